# Functions of C in object files that need nothing of who loads them: the linker fills their table.
#
# A kernel takes lists of XLA's buffers, of which it reads the pointer to the data alone. A function
# of C takes the pointers, and puts lists of them on its stack.

"""
A function of C: its symbol and that of the kernel that it calls, the types of what it takes and
gives, and the bytes of workspace."""
struct CFunction
    name::String
    kernel::String
    operands::Vector{TensorType}
    results::Vector{TensorType}
    workspace::Int
end
"With the workspace as its last argument."
with_workspace(f::CFunction) = string(f.name, "_in")
"The signature that SciPy calls: how many numbers, the numbers, user data."
of_numbers(f::CFunction) = string(f.name, "_scipy")
"Whether it is a number of numbers."
isofnumbers(f::CFunction) =
    f.results == [TensorType(Float64, Dim[])] && !isempty(f.operands) &&
    all(t -> t.dtype === Float64, f.operands)
symbols(f::CFunction) =
    [f.name; with_workspace(f); isofnumbers(f) ? [of_numbers(f)] : String[]]

"""
    write_library_object(program, path, name, processor) -> (CFunction, ObjectFile)

A Program's kernel and the functions of C that call it, as an object file."""
write_library_object(p::Program, path::String, name::String, processor::Processor) =
    naming_refused(() -> library_object(p, path, name, processor), p)
function library_object(p::Program, path::String, name::String, processor::Processor)
    target = KernelTarget(register_bytes(processor))
    definitions, workspace = kernel_code(p) do name, stage, x
        name === :lower ? lower(x; target = target) : stage(x)
    end
    table = OutsideTable(Linker())
    code = Any[outside(d, table) for d in definitions]
    f = CFunction(name, string(definition_name(definitions[end])), map(aval, p.inputs),
        map(aval, p.outputs), workspace)
    f, write_object_file(path, code, symbols(f), table; more = [functions_text(f)],
        processor = processor)
end

# ---- the table

const OPAQUE_POINTERS = Base.libllvm_version >= v"17"
llvm_pointer(pointee) = OPAQUE_POINTERS ? "ptr" : string(pointee, '*')
address_of(symbol, type) = "i64 ptrtoint ($(llvm_pointer(type)) @\"$symbol\" to i64)"

function table_text(t::OutsideTable{Linker})
    data = [data_text(data_name(k), values) for (k, values) in enumerate(t.data)]
    places = [placed(Val(p.kind), p.name, t) for p in t.places]
    array = string('[', max(1, length(places)), " x i64]")
    values = isempty(places) ? "i64 0" : join(last.(places), ", ")
    join([data; unique(first.(places)); "@$TABLE = constant $array [$values], align $LINE"], '\n')
end
data_text(name, values) = "@\"$name\" = constant $(llvm_array(vec(values))), align 64"

"What a place needs to be said before it, and its value."
placed(::Union{Val{:function},Val{:routine}}, name, t) =
    "declare void @\"$name\"()", address_of(name, "void ()")
placed(::Val{:data}, name, t) =
    "", address_of(name, data_type(t.data[findfirst(k -> data_name(k) == name, eachindex(t.data))]))
placed(::Val{:constant}, ref, t) =
    data_text("constant_$ref", CONSTANTS[ref]),
    address_of("constant_$ref", data_type(CONSTANTS[ref]))
data_type(values) = "[$(words(vec(values))) x i64]"

# ---- the functions

"Up to so many bytes of workspace are taken from the stack, more by `malloc`."
const STACK_WORKSPACE = 4096

parameters(f::CFunction) = ["%a$k" for k in 1:length(f.operands)+length(f.results)]
typed(values) = join(("i64 $v" for v in values), ", ")

functions_text(f::CFunction) = join(
    [
        "declare i64 @malloc(i64)",
        "declare void @free(i64)",
        "declare i32 @\"$(f.kernel)\"($(join(fill(KERNEL_ARGUMENT, 3), ", ")))",
        text_with_workspace(f),
        text_of_caller(f),
        isofnumbers(f) ? text_of_numbers(f) : "",
    ], '\n')

# Julia hands pointers over as integers, before version 1.12.
const KERNEL_ARGUMENT = OPAQUE_POINTERS ? "ptr" : "i64"
kernel_argument(value) =
    OPAQUE_POINTERS ? ("  $value.pointer = inttoptr i64 $value to ptr\n", "ptr $value.pointer") :
    ("", "i64 $value")

function text_with_workspace(f::CFunction)
    values = [parameters(f); "%workspace"]
    array = "[$(length(values)) x i64]"
    pointer = llvm_pointer(array)
    element(list, k) = "getelementptr $array, $pointer $list, i64 0, i64 $(k - 1)"
    stores = (
        """
          %slot$k = $(element("%slots", k))
          store i64 $v, $(llvm_pointer("i64")) %slot$k
          %buffer$k = add i64 %first, $(8(k - 1) - DATA_OFFSET)
          %item$k = $(element("%list", k))
          store i64 %buffer$k, $(llvm_pointer("i64")) %item$k
        """ for (k, v) in enumerate(values)
    )
    made, arguments = zip(map(kernel_argument, ("%operands", "%results"))...)
    none = OPAQUE_POINTERS ? "ptr null" : "i64 0"
    """
    define i32 @"$(with_workspace(f))"($(typed(values))) {
      %slots = alloca $array, align 8
      %list = alloca $array, align 8
      %first = ptrtoint $pointer %slots to i64
      %operands = ptrtoint $pointer %list to i64
      %results = add i64 %operands, $(8length(f.operands))
    $(join(stores))$(join(made))  %status = call i32 @"$(f.kernel)"($(join(arguments, ", ")), $none)
      ret i32 %status
    }
    """
end

text_of_caller(f::CFunction) =
    f.workspace > STACK_WORKSPACE ? text_with_malloc(f) : text_with_stack(f)

call_with_workspace(f::CFunction) =
    "%status = call i32 @\"$(with_workspace(f))\"($(typed([parameters(f); "%workspace"])))"

function text_with_stack(f::CFunction)
    array = "[$(max(1, f.workspace)) x i8]"
    """
    define i32 @"$(f.name)"($(typed(parameters(f)))) {
      %area = alloca $array, align $ALIGNMENT
      %workspace = ptrtoint $(llvm_pointer(array)) %area to i64
      $(call_with_workspace(f))
      ret i32 %status
    }
    """
end

text_with_malloc(f::CFunction) = """
    define i32 @"$(f.name)"($(typed(parameters(f)))) {
      %block = call i64 @malloc(i64 $(f.workspace + ALIGNMENT - 1))
      %refused = icmp eq i64 %block, 0
      br i1 %refused, label %without, label %with
    without:
      ret i32 $OUT_OF_MEMORY
    with:
      %above = add i64 %block, $(ALIGNMENT - 1)
      %workspace = and i64 %above, -$ALIGNMENT
      $(call_with_workspace(f))
      call void @free(i64 %block)
      ret i32 %status
    }
    """

function text_of_numbers(f::CFunction)
    sizes = [prod(Int.(t.shape)) for t in f.operands]
    starts = cumsum([0; sizes])
    operands = ("  %a$k = add i64 %numbers, $(8starts[k])\n" for k in eachindex(sizes))
    nan = "double 0x7FF8000000000000"
    """
    define double @"$(of_numbers(f))"(i32 %count, i64 %numbers, i64 %data) {
      %value = alloca double, align 8
      %fits = icmp eq i32 %count, $(starts[end])
      br i1 %fits, label %right, label %wrong
    wrong:
      ret $nan
    right:
    $(join(operands))  %a$(length(sizes) + 1) = ptrtoint $(llvm_pointer("double")) %value to i64
      %status = call i32 @"$(f.name)"($(typed(parameters(f))))
      %number = load double, $(llvm_pointer("double")) %value, align 8
      %fine = icmp eq i32 %status, 0
      %result = select i1 %fine, double %number, $nan
      ret double %result
    }
    """
end

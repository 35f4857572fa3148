# Generated code as an object file that holds nothing of this process.

"""
The `parts` of an object file, paths, the symbols that it was asked to have, and the places of its
table, in order, which the loader fills with pointers before the first call. The table's symbol is
`pybridge_table`. The parts are to be linked with the files of `routines`, by their symbols."""
struct ObjectFile
    parts::Vector{String}
    symbols::Vector{String}
    places::Vector{Place}
    routines::Vector{String}
end

const TABLE = "pybridge_table"

"""
    write_object_file(path, definitions, exported, table; more = [], processor = this one) ->
        ObjectFile

The functions that the definitions define, and LLVM's text of `more` functions, as an object file.
What they call is in it too where a linker fills the table, else in files of its own (routines.jl).
Their addresses are places of the table already. The file's symbols are the names in `exported` and
those that the filler of the table looks for. Throws `NoObjectFile` where code refers to what cannot
be in a file."""
function write_object_file(path::String, definitions::Vector{Any}, exported::Vector{String},
    table::OutsideTable; more = String[], processor = this_processor())
    functions = Any[Core.eval(Kernels, d) for d in definitions]
    own, named = IdDict{Any,Any}(), IdDict{Any,String}()
    for (f, d) in zip(functions, definitions)
        own[f], named[f] = d, string(nameof(f))
    end
    visible = union!(Set{String}(exported), symbols_to_fill(table))
    file = PartedFile(path, visible, processor, haveparts(table))
    try
        foreach(text -> add!(file, text), [table_text(table); more])
        count = 0
        place!(s, text) = add!(file, placed_text(s, text, count += 1, named, table))
        routines = each_definition_text(place!, functions, own)
        needed = routines_of(place!, table, routines)
        return ObjectFile(finish!(file), exported, table.places, needed)
    finally
        stop!(file)
    end
end

"What the loader must find by name to fill the table: it, its data and functions, or nothing."
symbols_to_fill(::OutsideTable{Linker}) = String[]
symbols_to_fill(t::OutsideTable{Loader}) =
    String[TABLE, (p.name for p in t.places if p.kind === :function)...,
        map(data_name, eachindex(t.data))...]

"""
`f(s, text)` for each function that has one of the `definitions`. Gives the routines that they call:
all that has none."""
function each_definition_text(f, functions::Vector{Any}, definitions::IdDict{Any,Any})
    routines = Specialization[]
    each_reached([only_specialization(g) for g in functions]) do s
        haskey(definitions, s.f) || (push!(routines, s); return Specialization[])
        text = definition_text(s, definitions)
        f(s, text)
        values(text.callees)
    end
    routines
end

"`f(s, text)` for each of the routines and all that they call."
each_routine_text(f, routines) =
    each_reached(routines) do s
        text = FunctionText(s)
        f(s, text)
        values(text.callees)
    end

"""
The text of a definition. Where it calls several functions of one name, or one for several types,
each call gets a function of its own, by whose name LLVM's text tells them apart; these are added to
the definitions."""
function definition_text(s::Specialization, definitions)
    text, name = own_text(s)
    called = called_names(text, name)
    methods = called_methods(s, called)
    names = Set{String}(name for (name, found) in methods if length(found) > 1)
    isempty(names) && return FunctionText(text, name, callees(called, methods, s))
    copies = Any[]
    # Under another name: while a package precompiles, no method may be written over.
    changed = with_name(distinguished(definitions[s.f], names, copies),
        Symbol(function_name(s), :_distinguished))
    for copy in copies
        definitions[Core.eval(Kernels, copy)] = copy
    end
    FunctionText(Specialization(Core.eval(Kernels, changed), s.types))
end

function with_name(ex::Expr, name::Symbol)
    ex.head === :call && return Expr(:call, name, ex.args[2:end]...)
    k = ex.head === :macrocall ? length(ex.args) : 1
    Expr(ex.head, ex.args[1:k-1]..., with_name(ex.args[k], name), ex.args[k+1:end]...)
end

distinguished(x, names, copies) = x
function distinguished(ex::Expr, names, copies)
    arguments = Any[distinguished(a, names, copies) for a in ex.args]
    ex.head === :call && isambiguous(arguments[1], names) || return Expr(ex.head, arguments...)
    f, count = Symbol("distinct_", COUNT[] += 1), length(arguments) - 1
    x, T = [Symbol(:x, k) for k in 1:count], [Symbol(:T, k) for k in 1:count]
    # With type parameters, since Julia specializes no function for the functions that it passes on.
    push!(copies,
        :(@noinline $f($((:($v::$t)
                          for (v, t) in zip(x, T))...)) where {$(T...)} = $(arguments[1])($(x...))))
    Expr(:call, GlobalRef(Kernels, f), arguments[2:end]...)
end
isambiguous(@nospecialize(f), names) =
    f isa Union{Function,Versioned} && function_name(Specialization(f, nothing)) in names

"A symbol for a function: definitions have names of their own, others get one that no two share."
symbol_of(s::Specialization, named) = get(() -> symbol_of(s), named, s.f)
symbol_of(s::Specialization) =
    string("callee_", function_name(s), '_', string(hash(string(s.f, s.types)); base = 16))

"A function's text with symbols for what it calls and addresses that hold in any process."
function placed_text(own::Specialization, t::FunctionText, k, named, table)
    symbols = Dict{String,String}(name => symbol_of(callee, named) for (name, callee) in t.callees)
    symbols[t.name] = symbol_of(own, named)
    declared = Set{String}()
    text = replace(t.text, LLVM_NAME => name -> renamed(name, symbols, k))
    text = replace(
        text,
        r"inttoptr \(i64 (\d+) to ([^()]*(?:\([^()]*\))?\**)\)" =>
            x ->
                relocated(x, own, table, declared)
    )
    text = string(declared_once(text), '\n', join(declared, '\n'))
    check_complete(text, table, union(values(symbols), C_FUNCTIONS, (TABLE,)))
    string(text, "\n@$TABLE = external global [$(max(1, length(table.places))) x i64]\n")
end

"""
The text with each symbol declared once: a name of Julia's for each call may mean
the same function."""
function declared_once(text)
    seen = Set{String}()
    kept = filter(split(text, '\n')) do line
        startswith(line, "declare ") || return true
        name = first_name(line)
        name in seen ? false : (push!(seen, name); true)
    end
    join(kept, '\n')
end

"Symbols are quoted, as Julia's names are any text; data of a module get a name of the module."
function renamed(name, symbols, k)
    bare = strip(name[2:end], '"')
    haskey(symbols, bare) && return string("@\"", symbols[bare], '"')
    # What the text declares and nothing uses stays as it is.
    startswith(bare, "llvm.") || startswith(bare, "julia.") || bare in C_FUNCTIONS ? name :
    string("@\"", bare, ".of_", k, '"')
end

"""
A constant address as the place of the table, the C function or the constant of
Julia's that it means."""
function relocated(constant, specialization::Specialization, table, declared)
    number, type = match(r"\(i64 (\d+) to (.*)\)$", constant).captures
    address = parse(UInt, number)
    k = table_index(address, table)
    if k !== nothing
        array = "[$(length(table.places)) x i64]"
        return cast("getelementptr ($array, $(pointer_to(array, type)) @$TABLE, i64 0, i64 $k)",
            "i64", type)
    end
    name = get(c_functions(), address, nothing)
    if name !== nothing
        push!(declared, "@$name = external global i8")
        return cast("@$name", "i8", type)
    end
    found = constant_object(address, specialization)
    found === nothing &&
        throw(
            NoObjectFile(
                "$(function_name(specialization)) refers to an address of " *
                "this process: $constant"
            )
        )
    object, offset = found
    opaque = opaque_pointers(type)
    push!(declared, object_text(object, opaque))
    start = cast(object_symbol(object), object_type(object, opaque), pointer_to("i8", type))
    cast("getelementptr (i8, $(pointer_to("i8", type)) $start, " *
         "i64 $(bytes_before(object) + offset))", "i8", type)
end
opaque_pointers(type) = type == "ptr"
pointer_to(pointee, type) = opaque_pointers(type) ? "ptr" : pointee * "*"
cast(value, pointee, type) = opaque_pointers(type) ? value : "bitcast ($(pointee)* $value to $type)"

function table_index(address::UInt, table)
    TABLE_ADDRESS <= address < TABLE_ADDRESS + 8 * length(table.places) && address % 8 == 0 ||
        return nothing
    Int((address - TABLE_ADDRESS) ÷ 8)
end

@eval c_functions() =
    Dict{UInt,String}($((:(UInt(cglobal($(QuoteNode(Symbol(f))))) => $f) for f in C_FUNCTIONS)...))

"""
The constant of Julia's that has an address which a function's code has, and the bytes before the
address: a text in the code, or the one array of which only the data are read."""
function constant_object(address::UInt, s::Specialization)
    start(object) = UInt(pointer_from_objref(object))
    address == start(NumberMath.QUADRANTS) && return NumberMath.QUADRANTS, 0
    for statement in inferred_statements(s), text in texts_in(statement)
        start(text) <= address <= start(text) + 8 + sizeof(text) || continue
        return text, Int(address - start(text))
    end
end
object_symbol(object) = "@object_$(UInt(pointer_from_objref(object)))"
texts_in(x) = ()
texts_in(x::String) = (x,)
texts_in(x::QuoteNode) = texts_in(x.value)
texts_in(x::GlobalRef) =
    (y = constant_value(x); y === nothing ? () : texts_in(something(y)))
texts_in(x::Expr) = String[text for a in x.args for text in texts_in(a)]

# As Julia lays them out: of an array the pointer to its data comes first, of a text its
# length and then its bytes.
object_text(values::Vector, opaque) =
    "@data_of_array = internal constant $(llvm_array(values)), align $LINE\n" *
    "$(object_symbol(values)) = internal constant " *
    (
        opaque ? "ptr @data_of_array" :
        "i64* getelementptr ([$(words(values)) x i64], " *
        "[$(words(values)) x i64]* @data_of_array, i64 0, i64 0)"
    )
object_text(text::String, opaque) =
    "$(object_symbol(text)) = internal constant $(llvm_array(laid_out(text))), align $LINE"
object_type(values::Vector, opaque) = opaque ? "ptr" : "i64*"
object_type(text::String, opaque) = "[$(words(laid_out(text))) x i64]"
laid_out(text::String) =
    vcat(zeros(UInt8, bytes_before(text)), collect(reinterpret(UInt8, [sizeof(text)])),
        Vector{UInt8}(text), [0x00])
"The bytes in front of an object that has to lie as it does in this process."
bytes_before(text::String) = Int(UInt(pointer_from_objref(text)) % LINE)
bytes_before(values::Vector) = 0        # of which only the pointer to its data is read

words(values::Vector) = cld(sizeof(values), 8)
function llvm_array(values::Vector)
    bytes = zeros(UInt64, words(values))
    GC.@preserve bytes values unsafe_copyto!(Ptr{UInt8}(pointer(bytes)),
        Ptr{UInt8}(pointer(values)), sizeof(values))
    string('[', length(bytes), " x i64] [",
        join(("i64 $(reinterpret(Int64, b))" for b in bytes), ", "), ']')
end

table_text(t::OutsideTable{Loader}) = join(
    String[
        "@$TABLE = global [$(max(1, length(t.places))) x i64] zeroinitializer, align $LINE",
        ("@$(data_name(k)) = global $(llvm_array(values)), align 64"
        for (k, values) in enumerate(t.data))...,
    ], '\n')

"""
Refuses a text with anything of this process left in it, or that uses what it does not
define or `may_use`."""
function check_complete(text, table, may_use)
    defined = Set{String}(
        first_name(line) for line in split(text, '\n') if occursin(r"^(define |@.* = )", line)
    )
    for used in used_names(text)
        used in defined || used in may_use || startswith(used, "llvm.") ||
            throw(NoObjectFile("the code uses $used"))
    end
    for line in split(text, '\n')
        occursin("inttoptr (", line) &&
            throw(NoObjectFile("the code has an address: $(strip(line))"))
        for number in eachmatch(r"\bi64 (\d{10,18})\b", line)
            isintable(parse(UInt, number[1])) &&
                throw(NoObjectFile("the code computes a place of the table: $(strip(line))"))
        end
    end
end
isintable(n::UInt) = TABLE_ADDRESS <= n < TABLE_ADDRESS + 8MOST_PLACES

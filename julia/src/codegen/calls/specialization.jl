# Compiled functions, what Julia has inferred of them, and LLVM's text of them.

"""
A function for some types of arguments, a tuple type. What is done with functions here is compiled
once for all of them: every kernel brings new ones."""
struct Specialization
    f::Any
    types::Any
end
function_name(s::Specialization) =
    s.f isa Union{Function,Type} ? string(nameof(s.f)) : string(nameof(typeof(s.f)))

"A function that a definition has made, which has one method."
only_specialization(@nospecialize(f)) =
    Specialization(f, Tuple{first(methods(f)).sig.parameters[2:end]...})

"Calls `callees_of` with each of these, and with each that it returns, once."
function each_reached(callees_of, roots)
    known, waiting = Set{Specialization}(), collect(Specialization, roots)
    while !isempty(waiting)
        check_cancelled()
        next = popfirst!(waiting)
        next in known && continue
        push!(known, next)
        append!(waiting, callees_of(next))
    end
end

# Names in LLVM's text, of functions and of data.
const LLVM_NAME = r"@(?:\"([^\"]+)\"|([-\w$.!#]+))"
bare_name(m::RegexMatch) = String(something(m[1], m[2]))
first_name(line) = bare_name(match(LLVM_NAME, line))

const JULIA_NAME = r"^(?:j|j1|julia)_(.+)_\d+$"
"What Julia calls a function that LLVM's text calls so, or `nothing`."
julia_name(name) = (m = match(JULIA_NAME, name); m === nothing ? nothing : m[1])

# Plain text: `raw` would keep debug information, and make newer Julias pass their task as an
# argument and stop at safepoints, which code outside of a Julia process cannot.
function llvm_text(s::Specialization; dump_module = true)
    prints_inferred() && return printed_text(s, dump_module)
    sprint(
        io -> code_llvm(io, s.f, s.types; raw = false, dump_module = dump_module, optimize = true,
            debuginfo = :none)
    )
end

# Since 1.11 `code_llvm` infers with those of the compiler's methods that are valid now, which it
# compiles first if a package has added methods to what they call: some four seconds in every
# process. `code_typed` infers as all of Julia does, with the compiler as it was built.
printed_text(s::Specialization, dump_module) =
    InteractiveUtils._dump_function_llvm(
        only(Base.method_instances(s.f, s.types, Base.get_world_counter())),
        first(only(code_typed(s.f, s.types))), false, true, dump_module, true, :none, PLAIN_TEXT)
prints_inferred() =
    isdefined(InteractiveUtils, :_dump_function_llvm) && hasmethod(
        InteractiveUtils._dump_function_llvm, Tuple{Core.MethodInstance,Core.CodeInfo,Bool,Bool,
            Bool,Bool,Symbol,typeof(PLAIN_TEXT)})
"What `code_llvm` asks of the code generator for plain text."
const PLAIN_TEXT =
    VERSION < v"1.11" ? nothing :
    Base.CodegenParams(debug_info_kind = Cint(0), debug_info_level = Cint(2),
        safepoint_on_entry = false, gcstack_arg = false)

"The method instances that the inferred code invokes, by the function's name."
function invoked_methods(s::Specialization)
    found = Dict{String,Vector{Core.MethodInstance}}()
    for statement in inferred_statements(s)
        statement isa Expr && statement.head === :invoke || continue
        instance = method_instance(statement.args[1])
        same = get!(() -> Core.MethodInstance[], found, string(instance.def.name))
        instance in same || push!(same, instance)
    end
    found
end
inferred_statements(s::Specialization) = inferred_code(s).code
method_instance(m::Core.MethodInstance) = m
method_instance(code) = method_instance(code.def)      # Julia 1.12 has code instances there

"""
The value of a global constant, `Some` of it, or nothing: also of one that was defined since the
caller was called, as kernels are. Julia 1.12 otherwise warns, and later ones refuse."""
constant_value(x::GlobalRef) = Base.invokelatest(present_value, x)
present_value(x::GlobalRef) =
    isdefined(x.mod, x.name) && isconst(x.mod, x.name) ? Some(getfield(x.mod, x.name)) : nothing

function Specialization(m::Core.MethodInstance)
    F, types = m.specTypes.parameters[1], Tuple{m.specTypes.parameters[2:end]...}
    F <: Type && return Specialization(F.parameters[1], types)
    Specialization(any_value(F), types)
end
"A value of the type: what code is compiled for does not depend on which."
any_value(F::DataType) =
    isdefined(F, :instance) ? F.instance : reinterpret(F, zeros(UInt8, sizeof(F)))[1]

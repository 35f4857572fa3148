# LLVM's text of a compiled function, and which functions of Julia's it calls.
#
# `code_llvm` is what all versions of Julia have in common here: optimised code of one function, in
# which the functions it calls are declared by made-up names. Whom such a name means is known from
# the inferred code. Where two functions of one name are called, and so it is not known, there is no
# object file.

"""
A function compiled for some types of arguments: LLVM's text of its module, the name of its
definition there, and by their names there the functions that it calls."""
struct FunctionText
    text::String
    name::String
    callees::Dict{String,Tuple{Any,Type}}
end

const JULIA_NAME = r"^(?:j|j1|julia)_(.+)_\d+$"
"What Julia calls a function that LLVM's text calls so, or `nothing`."
julia_name(name) = (m = match(JULIA_NAME, name); m === nothing ? nothing : m[1])

# Plain text: `raw` would keep debug information, and make newer Julias pass their task as an
# argument and stop at safepoints, which code outside of a Julia process cannot.
llvm_text(f, types) = sprint(io -> code_llvm(io, f, types; raw = false, dump_module = true, optimize = true, debuginfo = :none))

function FunctionText(f, types::Type)
    # Inferred in the present world, and remembered: Julia 1.5 otherwise calls what is new in the
    # code by way of its runtime.
    Base.return_types(f, types)
    text = llvm_text(f, types)
    defined = [m[1] for m in eachmatch(r"^define [^\n]*?@\"?([^\"(\s]+)\"?\("m, text)]
    own = filter(name -> julia_name(name) == function_name(f), defined)
    length(own) == 1 || throw(NoObjectFile("LLVM's text of $(function_name(f)) defines $(join(defined, ", "))"))
    text = only_definition(text, first(own))
    FunctionText(text, first(own), callees(text, first(own), f, types))
end
function_name(f::Union{Function,Type}) = string(nameof(f))
function_name(f) = string(nameof(typeof(f)))

"The text without the definitions of other functions, the wrappers for calls by Julia, and what keeps their names alive."
function only_definition(text, name)
    kept, inside = String[], false
    for line in split(text, '\n')
        if startswith(line, "define ")
            inside = !occursin("@$name(", line) && !occursin("@\"$name\"(", line)
        end
        inside || occursin(r"^@llvm\.(compiler\.)?used", line) || push!(kept, line)
        startswith(line, "}") && (inside = false)
    end
    join(kept, '\n')
end

"All names of functions and data that the text uses, declarations aside."
function used_names(text)
    found = Set{String}()
    for line in split(text, '\n')
        startswith(line, "declare ") && continue
        for m in eachmatch(r"@(?:\"([^\"]+)\"|([-\w$.!#]+))", line)
            push!(found, something(m[1], m[2]))
        end
    end
    found
end

"Thrown for a function that calls several functions of one name."
struct AmbiguousCall <: Exception
    caller::String
    names::Set{String}
end
Base.showerror(io::IO, e::AmbiguousCall) = print(io, e.caller, " calls several functions named ", join(e.names, ", "))

"The functions of Julia's that the text calls by name, each with the types of its arguments."
function callees(text, name, f, types)
    called = Dict{String,String}(u => julia_name(u) for u in used_names(text) if u != name && julia_name(u) !== nothing)
    isempty(called) && return Dict{String,Tuple{Any,Type}}()
    invoked = invoked_methods(f, types)
    ambiguous = Set{String}(n for n in values(called) if length(get(invoked, n, ())) > 1)
    isempty(ambiguous) || throw(AmbiguousCall(function_name(f), ambiguous))
    unknown = filter(n -> !haskey(invoked, n), collect(values(called)))
    isempty(unknown) || throw(NoObjectFile("$(function_name(f)) calls $(first(unknown)), which its inferred code does not"))
    Dict{String,Tuple{Any,Type}}(u => called_function(first(invoked[n])) for (u, n) in called)
end

"The method instances that the inferred code invokes, by the function's name."
function invoked_methods(f, types)
    found = Dict{String,Vector{Core.MethodInstance}}()
    for (code, _) in code_typed(f, types), statement in code.code
        statement isa Expr && statement.head === :invoke || continue
        instance = method_instance(statement.args[1])
        same = get!(() -> Core.MethodInstance[], found, string(instance.def.name))
        instance in same || push!(same, instance)
    end
    found
end
method_instance(m::Core.MethodInstance) = m
method_instance(code) = method_instance(code.def)      # Julia 1.12 has code instances there

function called_function(m::Core.MethodInstance)
    F, types = m.specTypes.parameters[1], Tuple{m.specTypes.parameters[2:end]...}
    f = F <: Type ? F.parameters[1] : isdefined(F, :instance) ? F.instance : throw(NoObjectFile("$F has fields"))
    f, types
end

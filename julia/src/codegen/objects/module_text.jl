# LLVM's text of a compiled function, and which functions of Julia's it calls.
#
# `code_llvm` is what all versions of Julia have in common here: optimised code of one function, in
# which the functions it calls are declared by made-up names. Whom such a name means is known from
# the inferred code. Where two functions of one name are called, and so it is not known, there is no
# object file.

"""
LLVM's text of a specialization's module, the name of its definition there, and by their names there
the functions that it calls."""
struct FunctionText
    text::String
    name::String
    callees::Dict{String,Specialization}
end

function FunctionText(s::Specialization)
    text, name = own_text(s)
    called = called_names(text, name)
    FunctionText(text, name, callees(called, called_methods(s, called), s))
end

"Its text and its name there."
function own_text(s::Specialization)
    # Inferred in the present world, and remembered: Julia 1.5 otherwise calls what is new in the
    # code by way of its runtime.
    Base.return_types(s.f, s.types)
    text, name = llvm_text(s), function_name(s)
    defined = [first_name(line) for line in split(text, '\n') if startswith(line, "define ")]
    own = filter(d -> julia_name(d) == name, defined)
    length(own) == 1 || throw(NoObjectFile("LLVM's text of $name defines $(join(defined, ", "))"))
    text = with_addresses(only_definition(text, own[1]))
    reason = text_refused(text)
    isempty(reason) || throw(refused("$reason, in $name"))
    text, own[1]
end

"""
The text without the definitions of other functions, the wrappers for calls by Julia, and what keeps
their names alive."""
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

"""
The text with addresses in place of the names that Julia 1.12 has for them, and without the data
that it then does not use. What is for debuggers goes, too."""
function with_addresses(text)
    lines = filter(line -> !occursin(r"^\s*#dbg_", line), split(text, '\n'))
    addresses = Dict{String,String}(
        m[1] => m[2] for m in map(line -> match(ALIAS, line), lines) if m !== nothing)
    isempty(addresses) && return join(lines, '\n')
    code = filter(line -> !occursin(ALIAS, line) && !occursin(PRIVATE, line), lines)
    used = used_names(join(code, '\n'))
    data = filter(line -> occursin(PRIVATE, line) && first_name(line) in used, lines)
    replace(join(vcat(code, data), '\n'), LLVM_NAME => name -> get(addresses, name, name))
end
const ALIAS = r"^(@(?:\"[^\"]+\"|[-\w$.!#]+)) = private alias \S+, (inttoptr \(i64 \d+ to [^)]+\))"
const PRIVATE = r"^@.* = private unnamed_addr constant "

"All names of functions and data that the text uses, declarations aside."
function used_names(text)
    found = Set{String}()
    for line in split(text, '\n')
        startswith(line, "declare ") && continue
        foreach(m -> push!(found, bare_name(m)), eachmatch(LLVM_NAME, line))
    end
    found
end

"The functions of Julia's that the text calls: its names for them, and theirs."
function called_names(text::String, name::String)
    called = Dict{String,String}()
    for used in used_names(text)
        meant = julia_name(used)
        used == name || meant === nothing || (called[used] = meant)
    end
    called
end
"The methods that `s` calls, if it calls any; to find them takes the compiler some time."
called_methods(s::Specialization, called) =
    isempty(called) ? Dict{String,Vector{Core.MethodInstance}}() : invoked_methods(s)

"What is called, by the text's names. Throws `NoObjectFile` where several functions have a name."
callees(called, methods, s::Specialization) = Dict{String,Specialization}(
    used => without_fields(only_callee(get(methods, meant, Core.MethodInstance[]), meant, s))
    for (used, meant) in called
)
function only_callee(found, meant, s)
    length(found) == 1 && return found[1]
    trouble = isempty(found) ? "calls $meant, which its inferred code does not" :
              "calls several functions named $meant"
    throw(NoObjectFile("$(function_name(s)) $trouble"))
end
function without_fields(m::Core.MethodInstance)
    F = m.specTypes.parameters[1]
    F <: Type || isdefined(F, :instance) || throw(NoObjectFile("$F has fields"))
    Specialization(m)
end

# Names of Julia's modules in sources, which are read and not run.

"Modules of Julia's, by what the sources call them."
const JULIAS_MODULES = Dict(
    :Base => "Base", :Core => "Core", :Compiler => "Core.Compiler", :Broadcast => "Base.Broadcast",
    :Iterators => "Base.Iterators", :Meta => "Base.Meta", :Sys => "Base.Sys",
    :Libc => "Base.Libc", :Threads => "Base.Threads", :LinearAlgebra => "LinearAlgebra",
    :InteractiveUtils => "InteractiveUtils", :Libdl => "Libdl", :Random => "Random",
    :SHA => "SHA")

"`a.b.c` as text where it begins with one of those modules; else nothing."
qualified(ex) = nothing
qualified(ex::Symbol) = get(JULIAS_MODULES, ex, nothing)
function qualified(ex::Expr)
    ex.head === :. && length(ex.args) == 2 && ex.args[2] isa QuoteNode &&
        ex.args[2].value isa Symbol || return nothing
    owner = qualified(ex.args[1])
    owner === nothing ? nothing : string(owner, '.', ex.args[2].value)
end

"""
Adds the qualified names in an expression, those that `using Module: name` takes, and the symbols
that name C functions of Julia's and of LLVM's."""
names_used!(found, ex) = found
names_used!(found, q::QuoteNode) = names_used!(found, q.value)
names_used!(found, s::Symbol) =
    occursin(r"^(jl_|LLVM[A-Z])", string(s)) ? push!(found, string(s)) : found
function names_used!(found, ex::Expr)
    name = qualified(ex)
    name === nothing || return push!(found, name)
    if ex.head in (:using, :import)
        for path in ex.args
            path isa Expr && path.head === :(:) || continue
            owner = get(JULIAS_MODULES, path.args[1].args[1], nothing)
            owner === nothing && continue
            union!(found, (string(owner, '.', n.args[end]) for n in path.args[2:end]))
        end
        return found
    end
    foldl(names_used!, ex.args; init = found)
end

"The texts of the sources in a folder and below it."
source_texts(folder) = [
    read(joinpath(path, file), String)
    for (path, _, files) in walkdir(folder) for file in files if endswith(file, ".jl")]

names_used(texts) =
    foldl((found, text) -> names_used!(found, Base.parse_input_line(text)), texts;
        init = Set{String}())

"The module that has a qualified name, and the name in it; nothing where Julia lacks the module."
function place(name)
    path = Symbol.(split(name, '.'))
    owner = get(ROOTS, first(path), nothing)
    for n in path[2:end-1]
        owner isa Module && isdefined(owner, n) || return nothing
        owner = getfield(owner, n)
    end
    owner isa Module ? (owner, last(path)) : nothing
end
const ROOTS = Dict(
    nameof(m) => m for m in (Base, Core, InteractiveUtils, Libdl, LinearAlgebra, Random, SHA))

"Whether this Julia has what a qualified name says."
has(name) = (p = place(name); p !== nothing && isdefined(p...))

"Whether Julia promises to keep a qualified name, or another by which it is known everywhere."
function is_promised(name)
    p = place(name)
    p !== nothing && (is_promised(p...) || has(name) && is_exported_by_base(p...))
end
is_promised(owner, name) = name in names(owner) ||
    isdefined(Base, :ispublic) && getfield(Base, :ispublic)(owner, name)
is_exported_by_base(owner, name) =
    any(m -> name in names(m) && getfield(m, name) === getfield(owner, name), (Base, Core))

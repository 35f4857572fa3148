# Which layer may use which: the sources are read, not run. A name belongs to the file that defines
# it first, in the order of inclusion; a file may use names of its own layer and of those that the
# table gives to it. Inside of a definition, a name that is also a local variable or an argument of
# it counts as that.

"The layers, from below, with those that each may know. A layer is a folder or a file of `src`."
const MAY_KNOW = [
    "ir" => [],
    "interface.jl" => ["ir"],
    "costs.jl" => ["ir", "interface.jl"],
    "tuning.jl" => [],
    "math" => [],
    "ffi" => ["ir"],
    "ad" => ["ir", "interface.jl"],
    "passes" => ["ir", "interface.jl", "costs.jl", "tuning.jl", "ad"],
    "rules" => ["ir", "interface.jl", "costs.jl", "math", "ad", "passes"],
    "codegen/plan" => ["ir", "interface.jl", "costs.jl", "tuning.jl", "rules"],
    "codegen/generator" => ["ir", "interface.jl", "tuning.jl", "codegen/plan"],
    "codegen/nest" =>
        ["ir", "interface.jl", "costs.jl", "tuning.jl", "math", "rules", "codegen/generator"],
    "codegen/lower" =>
        ["ir", "interface.jl", "tuning.jl", "math", "ffi", "rules", "codegen/plan",
            "codegen/generator", "codegen/nest"],
    "codegen/kernels" => ["ir", "interface.jl", "costs.jl", "tuning.jl", "math", "passes", "rules",
        "codegen/plan", "codegen/generator", "codegen/nest", "codegen/lower"],
    "codegen/calls" => ["ir", "ffi", "codegen/generator", "codegen/nest", "codegen/lower"],
    "codegen/compile.jl" => ["ir", "interface.jl", "passes", "rules", "codegen/generator",
        "codegen/lower", "codegen/calls"],
    "codegen/objects" => ["ir", "math", "ffi", "rules", "codegen/generator", "codegen/nest",
        "codegen/lower", "codegen/kernels", "codegen/calls", "codegen/compile.jl"],
    "codegen/explain.jl" => ["ir", "interface.jl", "passes", "rules", "codegen/plan",
        "codegen/generator", "codegen/lower", "codegen/compile.jl"],
    "functions" => ["ir", "ffi"],
    "enzyme" => ["ir", "interface.jl", "tuning.jl", "math", "ffi", "ad", "passes", "rules",
        "codegen/plan", "codegen/generator", "codegen/nest", "codegen/lower",
        "codegen/kernels",
        "codegen/compile.jl", "functions"],
    "tracing" => ["ir", "interface.jl", "ad", "passes", "rules", "codegen/compile.jl",
        "functions"],
    "archive" => ["ir", "rules", "tracing"],
    "packages" => ["ir", "interface.jl", "ad", "tracing", "archive"],
    "testing" => ["ir", "interface.jl", "ad", "tracing"],
    "serve" => ["ir", "interface.jl", "ffi", "ad", "passes", "rules", "codegen/generator",
        "codegen/nest", "codegen/compile.jl", "codegen/objects", "codegen/kernels",
        "codegen/explain.jl", "functions",
        "enzyme", "tracing"],
]

"""
What equations, their text and their values are made with: the part of the interface that is
called from below it."""
const CALLED_BY_IR =
    Set([:name, :attributes, :required_attributes, :declared_attributes, :infer, :iselementwise,
        :evaluate, :prune])

"The functions that take any primitive and are not for primitives to implement."
const OF_ANY_PRIMITIVE = Set([:register!, :folded, :product_rule, :native_code])

# ---- reading

parsed(text) = Base.parse_input_line(text)

"""
A file with its expressions at top level, outside of submodules; `imported`: the names that
submodules take from the package."""
struct SourceFile
    path::String
    expressions::Vector{Any}
end

"""
The files of a package in the order of inclusion. `read_file(path)` gives their text; of a
submodule, what it imports."""
function source_files(read_file, path, package = nothing)
    found, own, folder = SourceFile[], Any[], dirname(path)
    function visit(ex, package)
        ex isa Expr || return
        if ex.head === :module && package === nothing
            visit(ex.args[3], ex.args[2])
        elseif ex.head === :module
            push!(own, Expr(:const, Expr(:(=), ex.args[2], nothing)))
            append!(own, (Expr(:use, n) for n in imported(ex, package)))
        elseif ex.head in (:block, :toplevel)
            foreach(a -> visit(a, package), ex.args)
        elseif ex.head === :call && ex.args[1] === :include
            append!(found, source_files(read_file, joinpath(folder, ex.args[2]), package))
        elseif ex.head === :macrocall && ex.args[1] isa GlobalRef      # a docstring
            visit(ex.args[end], package)
        else
            push!(own, ex)
        end
    end
    visit(parsed(read_file(path)), package)
    push!(found, SourceFile(path, own))
end

"The names in `using ..Package: a, b` within a module."
imported(ex, package) = Symbol[]
function imported(ex::Expr, package)
    ex.head === :(:) && ex.args[1].args == [:., :., package] ||
        return reduce(vcat, (imported(a, package) for a in ex.args); init = Symbol[])
    Symbol[last(path.args) for path in ex.args[2:end]]
end

"The name of what an expression at top level defines, or nothing."
defined(ex) = nothing
function defined(ex::Expr)
    ex.head === :struct && return defined_name(ex.args[2])
    ex.head === :macro && return Symbol('@', defined_name(ex.args[1]))
    ex.head in (:abstract, :const, :function, :(=)) && return defined_name(ex.args[1])
    ex.head === :macrocall && ex.args[1] === Symbol("@primitive") && return defined_name(ex.args[3])
    ex.head === :macrocall && return defined(ex.args[end])     # @inline, @noinline, @generated
    nothing
end
defined_name(ex) = nothing
defined_name(n::Symbol) = n
function defined_name(ex::Expr)
    ex.head === :tuple && return Symbol[n for n in map(defined_name, ex.args) if n isa Symbol]
    # (f::F)(x) = …
    ex.head === :call && ex.args[1] isa Expr && ex.args[1].head === :(::) && return nothing
    ex.head in (:call, :where, :(::), :<:, :curly, :(=), :const) && return defined_name(ex.args[1])
    nothing         # Base.f(…) = …
end

"The names that a file defines; those of loops of `@eval` are among the symbols that these go over."
function definitions(file::SourceFile)
    names, generates = Symbol[], any(ex -> ex isa Expr && ex.head === :for, file.expressions)
    for ex in file.expressions
        d = defined(ex)
        d isa Symbol && push!(names, d)
        d isa Vector && append!(names, d)
        generates && (d isa Symbol || ex.head === :for) && append!(names, capitalised_symbols(ex))
    end
    names
end
capitalised_symbols(ex) = Symbol[]
capitalised_symbols(q::QuoteNode) =
    q.value isa Symbol && isuppercase(first(string(q.value))) ? [q.value] : Symbol[]
capitalised_symbols(ex::Expr) =
    ex.head === :. && ex.args[end] isa QuoteNode ? capitalised_symbols(ex.args[1]) :    # a field
    reduce(vcat, map(capitalised_symbols, ex.args); init = Symbol[])

# ---- what is used

"Adds the names that an expression sets or binds."
locals!(found, ex) = found
function locals!(found, ex::Expr)
    ex.head === :quote && return found
    if ex.head in (:(=), :kw, :+=, :-=, :*=, :|=, :.=)
        bound!(found, ex.args[1])
    elseif ex.head === :function || ex.head === :->
        signature!(found, ex.args[1])
    elseif ex.head in (:local, :for, :let, :catch)
        foreach(a -> bound!(found, a), ex.args)
    elseif ex.head === :where
        foreach(a -> bound!(found, a), ex.args[2:end])
    end
    foreach(a -> locals!(found, a), ex.args)
    found
end
bound!(found, ex) = nothing
bound!(found, n::Symbol) = push!(found, n)
function bound!(found, ex::Expr)
    ex.head in (:tuple, :parameters, :block) && foreach(a -> bound!(found, a), ex.args)
    ex.head in (:(::), :(=), :kw, :..., :<:, :braces) && bound!(found, ex.args[1])
    ex.head in (:call, :where) && signature!(found, ex)
end
signature!(found, ex) = bound!(found, ex)
function signature!(found, ex::Expr)
    ex.head === :where &&
        (signature!(found, ex.args[1]); foreach(a -> bound!(found, a), ex.args[2:end]); return)
    ex.head === :(::) && ex.args[1] isa Expr && return signature!(found, ex.args[1])
    ex.head === :call || return bound!(found, ex)
    # a function inside of another: one at top level has its name taken out again
    ex.args[1] isa Symbol && push!(found, ex.args[1])
    foreach(a -> bound!(found, a), ex.args[2:end])
end

"""
Adds the names that an expression mentions, as values, functions, types or macros; of quoted code,
what is put into it."""
mentioned!(found, ex) = found
mentioned!(found, n::Symbol) = push!(found, n)
function mentioned!(found, ex::Expr)
    ex.head === :quote && return interpolated!(found, ex)
    ex.head in (:using, :import, :export, :line) && return found
    ex.head === :. && length(ex.args) == 2 &&
        return ex.args[2] isa QuoteNode ?
               mentioned!(found, ex.args[1]) :
               foldl(mentioned!, ex.args; init = found)
    ex.head === :kw && return mentioned!(found, ex.args[2])
    ex.head === :struct &&
        return foldl(mentioned!, [ex.args[2]; map(field_type, ex.args[3].args)]; init = found)
    ex.head === :macrocall && ex.args[1] === Symbol("@primitive") && return push!(found, ex.args[1])
    ex.head === :macrocall && return foldl(mentioned!, [ex.args[1]; ex.args[3:end]]; init = found)
    foldl(mentioned!, ex.args; init = found)
end
field_type(ex) = nothing
field_type(ex::Expr) = ex.head === :(::) ? ex.args[2] : ex
interpolated!(found, ex) = found
interpolated!(found, ex::Expr) =
    ex.head === :$ ? foldl(mentioned!, ex.args; init = found) :
    foldl(interpolated!, ex.args; init = found)

function used(file::SourceFile)
    found = Set{Symbol}()
    for ex in file.expressions
        ex.head === :use && (push!(found, ex.args[1]); continue)
        inner = ex.head === :macrocall ? ex.args[end] : ex
        own = inner isa Expr && inner.head in (:const,) ? Set{Symbol}() : locals!(Set{Symbol}(), ex)
        d = defined(ex)
        d isa Symbol && delete!(own, d)
        union!(found, setdiff!(mentioned!(Set{Symbol}(), ex), own))
    end
    found
end

# ---- the rule

layer(path, table) =
    something(findfirst(l -> path == first(l) || startswith(path, first(l) * "/"), table), 0)

"""
What files use and must not, a line each. `read_file(path)` gives the text of `root` and of all that
it includes; paths of layers are relative to its folder."""
function violations(read_file, root, table = MAY_KNOW; exempt = (layer, name) -> false)
    files = source_files(read_file, root)
    owner = Dict{Symbol,String}()
    for file in files, n in definitions(file)
        get!(owner, n, relpath(file.path, dirname(root)))
    end
    found = String[]
    for file in files
        path = relpath(file.path, dirname(root))
        path == basename(root) && continue
        here = layer(path, table)
        here == 0 && (push!(found, "$path is in no layer"); continue)
        own, allowed = table[here]
        for n in sort!(collect(used(file)))
            haskey(owner, n) || continue
            there = layer(owner[n], table)
            (there == here || there == 0 || first(table[there]) in allowed || exempt(own, n)) &&
                continue
            push!(found, "$path uses $n of $(owner[n])")
        end
    end
    found
end

"The functions outside of interface.jl that have a method for any primitive."
function unlisted_generics(read_file, root)
    found = String[]
    for file in source_files(read_file, root), ex in file.expressions
        basename(file.path) == "interface.jl" && continue
        d = defined(ex)
        d isa Symbol && takes_any_primitive(ex) && !(d in OF_ANY_PRIMITIVE) &&
            push!(found, "$(relpath(file.path, dirname(root))): $d")
    end
    found
end
takes_any_primitive(ex) = false
function takes_any_primitive(ex::Expr)
    ex.head === :macrocall && return takes_any_primitive(ex.args[end])
    ex.head in (:function, :(=)) && ex.args[1] isa Expr &&
        ex.args[1].head in (:call, :where, :(::)) &&
        is_any_primitive(first_argument(ex.args[1]))
end
is_any_primitive(ex) = ex isa Expr && ex.head === :(::) && ex.args[end] === :Primitive
first_argument(ex::Expr) = ex.head === :call ? get(ex.args, 2, nothing) : first_argument(ex.args[1])

# ---- the tests

const ROOT = joinpath(@__DIR__, "..", "src", "JaxprAD.jl")

@testset "every file uses what its layer may know, and no more" begin
    found = violations(path -> read(path, String), ROOT;
        exempt = (layer, n) -> layer == "ir" && n in CALLED_BY_IR)
    @test found == []
end

@testset "what a primitive may implement is in interface.jl" begin
    @test unlisted_generics(path -> read(path, String), ROOT) == []
end

"Two files, one a layer, of which the first must not know the second."
function planted(low, high)
    files = Dict("src/P.jl" => "module P\ninclude(\"low/a.jl\")\ninclude(\"high/b.jl\")\nend",
        "src/low/a.jl" => low, "src/high/b.jl" => high)
    violations(path -> files[path], "src/P.jl", ["low" => [], "high" => ["low"]])
end

@testset "a use of a higher layer is found: $use" for use in
                                                      ("f(x) = above(x)", "f(x) = map(above, x)",
    "f(x) = x isa Above", "f(x::Above) = x", "const C = [above]", "struct S\n x::Above\nend",
    "struct S{T<:Above}\n x::T\nend",
    "f(x) = :(1 + \$(above)(x))", "f(x) = Module_.g(x)", "f(x) = (y = 2; x -> above(x, y))",
    "f(x; key = LIMIT) = x", "@marked f(x) = x",
    "g(x) = x\nabove(x::Int) = g(x)", "f(x) = x + Generated()",
    "\"Says what f is.\"\nf(x) = [above(y) for y in x]",
    "module Sub\nusing ..P: above\nend")
    high = """
        above(x, y = 1) = x
        "A type."
        struct Above end
        const LIMIT = 3
        module Module_ g(x) = x end
        macro marked(ex) ex end
        for (type, n) in [(:Generated, 1)]
            @eval struct \$type end
        end"""
    # A name that the lower file defines first is its own.
    isown = startswith(use, "g(x)")
    @test planted(use, high) == (isown ? [] : ["low/a.jl uses $(first(filter(n -> occursin(n, use),
        ["above", "Above", "LIMIT", "Module_", "@marked", "Generated"]))) of high/b.jl"])
end

@testset "no use: $use" for use in
                            ("f(above) = above", "f(x) = x.above",
    "f(x) = g(x; above = 1)\ng(x; " *
    "above) = x",
    "f(x) = (above = x; above)", "f(x) = :above",
    "f(x) = :(above(x))", "f(x) = \"above\"", "f(x) = [above for above in x]",
    "struct S\n above::Int\nend")
    @test planted(use, "above(x) = x\nhigh(x) = f(x)") == []
end

# Of a loop whose body is long, or a long branch, stretches become functions: inference takes a time
# that grows with the square of a function's length, and machine code of several functions is made
# side by side. Only those that do much next to what passing their variables takes.

"""
A function of the kernel's whose loops are looked at: how often its code mentions each of its
variables, and the types of these. What is made of its loops comes to the `definitions`."""
struct LongFunction
    kernel::KernelCode
    definitions::Vector{Any}
    mentions::Dict{Symbol,Int}
    types::Dict{Symbol,DataType}
end

function count_mentions!(counts, ex)
    ex isa Symbol && (counts[ex] = get(counts, ex, 0) + 1)
    ex isa Expr && foreach(a -> count_mentions!(counts, a), ex.args)
    counts
end
count_mentions(code) = foldl(count_mentions!, code; init = Dict{Symbol,Int}())

"The code, in which long bodies and branches call functions for their stretches with loops."
function outline_bodies(k::KernelCode)
    definitions = Any[]
    for d in k.definitions
        push!(definitions, with_short_bodies(k, definitions, d))
    end
    types = with_arguments(k.generator.types, ARGUMENTS..., CONTEXT => Ptr{UInt8})
    f = LongFunction(k, definitions, count_mentions(k.code), types)
    code = with_short_bodies(f, k.code, Set{Symbol}(vcat(first.(collect(ARGUMENTS)), CONTEXT)))
    KernelCode(k.name, k.generator, code, definitions, k.slots)
end
with_arguments(types, arguments...) = merge(types, Dict{Symbol,DataType}(arguments...))

"The same of a definition, with the types of its arguments."
function with_short_bodies(k::KernelCode, definitions, d::Expr)
    statements(body_of(d)) > LONGEST_FUNCTION || return d
    arguments = Pair{Symbol,DataType}[a.args[1] => a.args[2]
                                      for a in definition_of(d).args[1].args[2:end]]
    f = LongFunction(k, definitions, count_mentions(body_of(d).args),
        with_arguments(k.generator.types, arguments...))
    body = with_short_bodies(f, body_of(d), Set{Symbol}(first.(arguments)))
    with_last(d, d.head === :macrocall ? with_last(definition_of(d), body) : body)
end
body_of(d::Expr) = definition_of(d).args[2]
with_last(ex::Expr, x) = Expr(ex.head, ex.args[1:end-1]..., x)

"The same of code before which the variables in `defined` have values."
function with_short_bodies(f::LongFunction, code::Vector{Any}, defined::Set{Symbol})
    defined, short = copy(defined), Any[]
    for ex in code
        push!(short, with_short_bodies(f, ex, defined))
        defined!(defined, ex)
    end
    short
end
with_short_bodies(::LongFunction, @nospecialize(ex), ::Set{Symbol}) = ex
function with_short_bodies(f::LongFunction, ex::Expr, defined::Set{Symbol})
    statements(ex) > LONGEST_FUNCTION || return ex
    ex.head === :block && return Expr(:block, short_body(f, ex, defined)...)
    Expr(ex.head, Any[with_short_bodies(f, a, defined) for a in ex.args]...)
end

function short_body(f::LongFunction, body::Expr, defined)
    parts = body_sections(Any[s for ex in body.args for s in unnested(ex)])
    length(parts) > 1 || return with_short_bodies(f, body.args, defined)
    code, defined = Any[], copy(defined)
    for part in parts
        append!(code, isfunction(f, part, defined) ? Any[function_call!(f, part, defined)] :
                      with_short_bodies(f, part.code, defined))
        union!(defined, part.defined)
    end
    code
end
# A block may keep vectors in its variables, but none that is longer than a function.
unnested(ex) =
    ex isa Expr && ex.head === :block && statements(ex) > LONGEST_FUNCTION ?
    Any[s for a in ex.args for s in unnested(a)] : Any[ex]

"As `sections`, with what has to stay in the loop itself in sections of its own."
function body_sections(code)
    parts, first_ = Section[], 1
    for (k, ex) in enumerate(code)
        isofloop(ex) || continue
        append!(parts, sections(code[first_:k-1]))
        push!(parts, Section(Any[ex]))
        first_ = k + 1
    end
    append!(parts, sections(code[first_:end]))
end
"Whether it ends the loop that it stands in, or tells LLVM something of it."
isofloop(ex) = ex isa Expr && (ex.head in (:break, :loopinfo) ||
                               ex.head !== :while && any(isofloop, ex.args))

variables_into(f::LongFunction, part, defined) =
    in_order(v for v in part.used if v in defined && haskey(f.types, v))
function variables_out_of(f::LongFunction, part)
    own = count_mentions(part.code)
    in_order(v for v in part.set if f.mentions[v] > own[v])
end

"""
Whether all that comes in and out of the section has a value there, and is no vector, and it does so
much that passing that takes little."""
function isfunction(f::LongFunction, part, defined)
    any(holds_loop, part.code) && !any(isofloop, part.code) || return false
    given, results = variables_into(f, part, defined), variables_out_of(f, part)
    all(v -> v in defined || v in part.set || !haskey(f.types, v), part.used) &&
        all(v -> v in defined || v in part.defined, results) &&
        !any(v -> f.types[v] <: Tuple, vcat(given, results)) &&
        statements_run(part.code) >= WORTH_PASSING * (length(given) + length(results))
end

"How many statements it runs, with one trip of loops whose number of trips is not known."
statements_run(code::Vector{Any}) = sum(Float64[statements_run(ex) for ex in code])
statements_run(@nospecialize(ex)) = 1.0
statements_run(ex::Expr) =
    ex.head === :while ? known_trips(ex.args[1]) * (1 + statements_run(ex.args[2])) :
    ex.head === :block ? 1 + statements_run(ex.args) :
    ex.head === :if ? 1 + maximum(Float64[statements_run(x) for x in ex.args[2:end]]) : 1.0
known_trips(@nospecialize(condition)) = 1
known_trips(condition::Expr) =
    condition.head === :call && condition.args[1] in (<, Core.Intrinsics.slt_int) &&
    condition.args[3] isa Int ? condition.args[3] : 1

"Makes a function of the section, and gives its call."
function function_call!(f::LongFunction, part, defined)
    given, results = variables_into(f, part, defined), variables_out_of(f, part)
    code = vcat(part.code, Any[returned(results)])
    inner = LongFunction(f.kernel, f.definitions, count_mentions(code), f.types)
    short = with_short_bodies(inner, code, Set{Symbol}(given))
    name = Symbol(f.kernel.name, :_body_, length(f.definitions) + 1)
    push!(f.definitions, :(@noinline function $name($((:($v::$(f.types[v])) for v in given)...))
        $(short...)
    end))
    call_with_results(f.kernel.generator,
        :($(GlobalRef(Kernels, name))($(given...))), results, Any[f.types[v] for v in results])
end

# In long code, what stages of the plan do alike becomes one function, which is compiled once: the
# layers of a network, the same formula for each of many arguments.

"""
Code up to the names of its variables and the numbers that may differ: equal `tokens` are code that
does the same. `variables` and `numbers` come in the order in which the code has them."""
struct Form
    tokens::Vector{Any}
    variables::Vector{Symbol}
    numbers::Vector{Number}
    places::Dict{Symbol,Int}
end
Form() = Form(Any[], Symbol[], Number[], Dict{Symbol,Int}())
function Form(code, types)
    f = Form()
    foreach(ex -> read_form!(f, ex, types), code)
    f
end
"The variable that comes k-th."
struct NumberedVariable
    k::Int
    type::DataType
end
"A number that may be another one."
struct FreeNumber
    type::DataType
end

read_form!(f::Form, @nospecialize(x), types) = push!(f.tokens, x)
function read_form!(f::Form, v::Symbol, types)
    haskey(types, v) || return push!(f.tokens, v)
    k = get!(f.places, v) do
        push!(f.variables, v)
        length(f.variables)
    end
    push!(f.tokens, NumberedVariable(k, types[v]))
end
function read_form!(f::Form, ex::Expr, types)
    push!(f.tokens, Expr, ex.head, length(ex.args))
    for (k, a) in enumerate(ex.args)
        isfree(ex, k) || (read_form!(f, a, types); continue)
        push!(f.tokens, FreeNumber(typeof(a)))
        push!(f.numbers, a)
    end
end

"""
Whether the k-th argument is a number without which the code is compiled as well: of floats any, of
integers where memory is, but not how often a loop runs."""
function isfree(ex::Expr, k)
    ex.head === :call && k > 1 || return false
    f, x = ex.args[1], ex.args[k]
    x isa Union{Float32,Float64} && return true
    x isa Union{Int,UInt} || return false
    f === Core.Intrinsics.add_int || get(PLACES_OF_POSITIONS, f, 0) == k
end
const PLACES_OF_POSITIONS = IdDict{Any,Int}(Core.Intrinsics.pointerref => 3,
    Core.Intrinsics.pointerset => 4, as_pointer => 4, as_position => 2)

Base.:(==)(a::Form, b::Form) =
    length(a.tokens) == length(b.tokens) && all(map(same_token, a.tokens, b.tokens))
same_token(@nospecialize(a), @nospecialize(b)) =
    a === b || (a isa String && b isa String && a == b)
Base.hash(f::Form, h::UInt) = hash_identities(f.tokens, h)

# ---- stretches

"""
The code of a stage; which of its form's variables come into it, and which of those that it sets are
read after it; whether it can be a function: these have a value in any case."""
struct Stretch
    code::Vector{Any}
    form::Form
    inputs::Vector{Int}
    outputs::Vector{Int}
    isfunction::Bool
end

"The stretches of code that end at `StageEnd`s, all of it in order."
function stretches(code, types)
    parts = [Section(part) for part in split_stages(code)]
    last_ = Dict{Symbol,Int}(v => k for (k, part) in enumerate(parts) for v in part.used)
    before, found = Set{Symbol}(vcat(first.(collect(ARGUMENTS)), CONTEXT)), Stretch[]
    for (k, part) in enumerate(parts)
        form = Form(part.code, types)
        places(wanted) = findall(wanted, form.variables)
        inputs = places(v -> v in before)
        outputs = places(v -> v in part.set && last_[v] > k)
        isfunction = all(p -> p in inputs || form.variables[p] in part.defined, outputs)
        # what is the same code, but passes on other variables, is another function
        append!(form.tokens, inputs)
        append!(form.tokens, outputs)
        push!(form.tokens, length(inputs))
        push!(found, Stretch(part.code, form, inputs, outputs, isfunction))
        union!(before, part.defined)
    end
    found
end
function split_stages(code)
    parts = [Any[]]
    for ex in code
        ex isa StageEnd ? push!(parts, Any[]) : push!(last(parts), ex)
    end
    parts
end

# LLVM takes its time for loops.
is_worth_sharing(code) =
    any(holds_loop, code) || sum(Int[statements(x) for x in code]) >= WORTH_SHARING

# ---- functions

"""
    share_functions(k) -> KernelCode

The code in which equal stretches of a long kernel are calls of one function."""
function share_functions(k::KernelCode)
    code = Any[x for x in k.code if !(x isa StageEnd)]
    sum(Int[statements(x) for x in code]) > LONGEST_FUNCTION || return with(k; code = code)
    types = merge(k.generator.types, Dict{Symbol,DataType}(CONTEXT => Ptr{UInt8}))
    parts, alike = stretches(k.code, types), Dict{Form,Vector{Stretch}}()
    for s in parts
        s.isfunction && is_worth_sharing(s.code) &&
            push!(get!(() -> Stretch[], alike, s.form), s)
    end
    calls = IdDict{Stretch,Expr}()
    for s in parts
        same = get(alike, s.form, Stretch[])
        length(same) > 1 && same[1] === s || continue
        name = Symbol(k.name, :_shared_, length(k.definitions) + 1)
        push!(k.definitions, shared_definition!(calls, name, same, k.generator, types))
    end
    with(k; code = Any[x for s in parts for x in (haskey(calls, s) ? Any[calls[s]] : s.code)])
end

"The definition of a function for all of these stretches, whose calls it adds to `calls`."
function shared_definition!(calls, name, same, g::Generator, types)
    s = first(same)
    variables(t, places) = t.form.variables[places]
    numbers, given = shared_numbers([t.form.numbers for t in same])
    results = Any[types[v] for v in variables(s, s.outputs)]
    for (t, own) in zip(same, given)
        call = :($(GlobalRef(Kernels, name))($(variables(t, t.inputs)...), $(own...)))
        calls[t] = call_with_results(g, call, variables(t, s.outputs), results)
    end
    arguments = [:($v::$(types[v])) for v in variables(s, s.inputs)]
    free = [:($(number_argument(k))::$(typeof(x))) for (k, x) in enumerate(first(given))]
    :(@noinline function $name($(arguments...), $(free...))
        $(with_numbers(s.code, numbers)...)
        $(returned(variables(s, s.outputs)))
    end)
end
number_argument(k) = Symbol(:number, k)

returned(results) =
    isempty(results) ? nothing :
    length(results) == 1 ? results[1] : Expr(:call, Core.tuple, results...)
function call_with_results(g::Generator, call, results, types)
    isempty(results) && return call
    length(results) == 1 && return :($(results[1]) = $call)
    y = fresh_symbol!(g, Tuple{types...})
    Expr(:block, :($y = $call), (:($v = $(getfield)($y, $k)) for (k, v) in enumerate(results))...)
end

"""
What stands for the free numbers in a function for several stretches, whose own are `lists`: one
that all share, an argument, or an argument and a constant more; and the arguments of each."""
function shared_numbers(lists)
    numbers, given, arguments = Any[], [Any[] for _ in lists], Vector{Any}[]
    for k in eachindex(first(lists))
        own = Any[list[k] for list in lists]
        if all(x -> x === own[1], own)
            push!(numbers, own[1])
            continue
        end
        j = findfirst(known -> same_difference(own, known), arguments)
        if j === nothing
            push!(arguments, own)
            foreach(push!, given, own)
            j = length(arguments)
        end
        push!(numbers, argument_and(number_argument(j), own[1], arguments[j][1]))
    end
    numbers, given
end
"Whether numbers are other ones, or in case of integers other ones and a constant."
same_difference(own, known) =
    all(map(===, own, known)) ||
    own[1] isa Union{Int,UInt} && typeof(known[1]) === typeof(own[1]) &&
    all(map((a, b) -> a - b === own[1] - known[1], own, known))
argument_and(v, x, known) =
    x === known ? v : :($(Core.Intrinsics.add_int)($v, $(x - known)))

"The code with other free numbers, in order, which are taken from the list."
with_numbers(x, numbers) = x
with_numbers(code::Vector{Any}, numbers) = Any[with_numbers(x, numbers) for x in code]
with_numbers(ex::Expr, numbers) = Expr(ex.head,
    Any[isfree(ex, k) ? popfirst!(numbers) : with_numbers(a, numbers)
        for (k, a) in enumerate(ex.args)]...)

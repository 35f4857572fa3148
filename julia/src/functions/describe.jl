# A request describes a function, its arguments and what to make of it: lines of a key and its
# value, an empty line, and source code.

struct Description
    values::Dict{String,String}
    code::String
end
function Description(text::AbstractString)
    head, code = split(text, "\n\n"; limit = 2)
    Description(
        Dict(
            String(k) => String(v)
            for (k, v) in (split(line, ' '; limit = 2) for line in split(head, '\n'))
        ),
        code)
end
Base.getindex(d::Description, key) = d.values[key]
given(d::Description, key) = haskey(d.values, key)

source(d::Description) = split(d["source"] * " ", ' '; limit = 2)
home(d::Description) = ((kind, word) = source(d); home(kind, strip(word), d["digest"], d.code))

"The function of this name, or the object itself where the source is one."
function find_function(d::Description, key = "name")
    kind, word = source(d)
    kind == "object" && key == "name" && return OBJECTS[parse(Int, word)]
    named(home(d), d[key], place(Val(Symbol(kind)), strip(word)))
end
place(::Val{:package}, word) = "the package $word"
place(::Val{:file}, word) = word
place(::Val{:code}, word) = "the source given to julia_function"
place(::Val, word) = "Main or Base"

"The way of showing arguments that the function has a method for."
function layout_for(d::Description, f, arguments, results)
    d["inputs"] == "view" && return Views()
    d["inputs"] == "copy" && return Arrays()
    for layout in (Views(), Arrays())
        hasmethod(f, typeof(example(layout, d, arguments, results))) && return layout
    end
    throw(MethodError(f, example(Arrays(), d, arguments, results)))
end

"Arguments of ones; what an in-place function writes to comes first."
function example(layout, d::Description, arguments, results)
    template, specs = slotted(arguments)
    x = filled(template,
        map(s -> shown(layout, operand(layout, fill!(fresh(s), one(eltype_of(s))))), specs))
    d["inplace"] == "1" || return x
    template, specs = slotted(results)
    (filled(template, map(s -> arranged(layout, fresh(s)), specs)), x...)
end
eltype_of(::Spec{T}) where {T} = T

"The tree of what the function returns for arguments of ones."
function inferred_result(d::Description)
    f, arguments = find_function(d), read_tree(d["arguments"])
    layout = layout_for(d, f, arguments, nothing)
    spec_of(f(example(layout, d, arguments, nothing)...))
end

"What the description asks for: the call, or the derivative that its steps lead to."
function described(d::Description)
    f, arguments, result = find_function(d), read_tree(d["arguments"]), read_tree(d["result"])
    layout = layout_for(d, f, arguments, result)
    steps = [split(step) for step in split(d["steps"], ';'; keepempty = false)]
    what, rest = first_of(d, f, arguments, result, layout, steps)
    made = given(d, "backend") && !isempty(rest) ? backend(d["backend"]) : nothing
    foldl((of, step) -> derived(made, of, step), rest; init = what)
end

"""
The call, or its first derivative by the user's own rule where there is one; and the
steps that remain."""
function first_of(d, f, arguments, result, layout, steps)
    if !isempty(steps) && given(d, RULES[steps[1][1]].key)
        rule = RULES[steps[1][1]]
        return rule.call(find_function(d, rule.key), arguments, result, layout), steps[2:end]
    end
    primal, x = slotted(arguments)
    results, y = slotted(result)
    Call(f, primal, results, layout, x, y; inplace = d["inplace"] == "1",
        narrows = d["narrows"] == "1"),
    steps
end
const RULES = Dict("forward" => (key = "jvp", call = jvp_call),
    "reverse" => (key = "vjp", call = vjp_call))

"One derivative of a call, by a backend or else by Enzyme. Places count from 1."
derived(made, of, step) = by_backend(of, made, step)
function derived(::Nothing, of, step)
    require_enzyme()
    Base.invokelatest(refuse_unfit, of)
    derivative(of, step)
end
derivative(of, step) = derived(Val(Symbol(step[1])), of, Tuple(parse.(Int, step[2:end])))
derived(::Val{:forward}, of, active) = Pushforward(of, active)
derived(::Val{:reverse}, of, active) = Pullback(of, active)

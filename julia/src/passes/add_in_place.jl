# x + z, where few elements of z are not zero, adds these to x in place. Such sums are in
# derivatives of slices and of indexed reads: of a loop that reads an element a trip, each trip
# would else pass the whole array.

"""
The sum of an array and a smaller one placed at the starts that follow, one for each axis, clamped
as those of `dynamic_update_slice`; only code generation knows it."""
struct AddWindow <: Primitive end
name(::AddWindow) = :add_window
reads_elements(::AddWindow, eqn, k) = k > 1
overwrites(::AddWindow, eqn) = 1

"""
    add_in_place(program) -> Program

The same Program, in which `x + z` is an `AddWindow` or a `scatter_add` on x, where z is made of
zeros and of at most an eighth as many elements, and nothing else needs it; and `x + (y + z)` one on
x + y, where y is computed element by element and so need not be in memory."""
function add_in_place(p::Program)
    uses, producer, equations = use_counts(p), IdDict{Var,Equation}(), Equation[]
    for e in p.equations
        check_cancelled()
        e = map_bodies(add_in_place, e)
        for made in sum_in_place(e, uses, producer)
            push!(equations, made)
            foreach(v -> producer[v] = made, made.outputs)
        end
    end
    dce(with(p; equations = equations))
end

"The equations of a sum; itself where neither operand is made of few elements."
function sum_in_place(e::Equation, uses, producer)
    name(e.op) === :add && !any(a -> isempty(shape(a)), e.inputs) || return Equation[e]
    for (x, z) in (e.inputs, reverse(e.inputs))
        additions = few_additions(z, uses, producer)
        isempty(additions) || return added_in_turn(additions, x, e.outputs[1])
    end
    for (x, z) in (e.inputs, reverse(e.inputs))
        y, additions = late_additions(z, uses, producer)
        (isempty(additions) || !independent(producer, [Term(false, x), Term(false, y)])) && continue
        whole = Var(aval(z))
        return vcat([with(e; inputs = Atom[x, y], outputs = Var[whole])],
            added_in_turn(additions, whole, e.outputs[1]))
    end
    Equation[e]
end

"Adds to `x` what the additions add to something else; the last of them gives `result`."
function added_in_turn(additions, x::Atom, result::Var)
    made = Equation[]
    for (k, addition) in enumerate(additions)
        y = k == length(additions) ? result : Var(aval(result))
        push!(made, with(added_to(Val(name(addition.op)), addition, x); outputs = Var[y]))
        x = y
    end
    made
end

"""
An array to which few elements are added, that is computed element by element for that alone, and
the additions in order; none where it is something else."""
function late_additions(z::Atom, uses, producer)
    additions = Equation[]
    while z isa Var && haskey(producer, z) && get(uses, z, 1) == 1
        e = producer[z]
        adds(Val(name(e.op))) && few_elements(Val(name(e.op)), e) ||
            return z, isfusable(e.op, e) ? additions : Equation[]
        pushfirst!(additions, e)
        z = e.inputs[1]
    end
    z, Equation[]
end

"The equations by which an array is made of zeros and few elements, in order; none if it is not."
function few_additions(z::Atom, uses, producer)
    # Between the additions of a sum are variables that only the next of them reads.
    z isa Var && haskey(producer, z) && get(uses, z, 1) == 1 || return Equation[]
    e = producer[z]
    few_elements(Val(name(e.op)), e) || return Equation[]
    starts_from_zeros(Val(name(e.op)), e, producer) && return Equation[e]
    before = adds(Val(name(e.op))) ? few_additions(e.inputs[1], uses, producer) : Equation[]
    isempty(before) ? before : push!(before, e)
end

issmall(u::Atom, x::Var) = size_of(shape(u)) <= SMALL_WINDOW * size_of(shape(x))
few_elements(::Val, e) = false
few_elements(::Val{:pad}, e) =
    all(==(0), e[:interior]) && all(>=(0), e[:low]) && all(>=(0), e[:high]) &&
    issmall(e.inputs[1], e.outputs[1])
few_elements(::Union{Val{:dynamic_update_slice},Val{:add_window}}, e) =
    issmall(e.inputs[2], e.outputs[1])
few_elements(::Val{:scatter_add}, e) = issmall(e.inputs[3], e.outputs[1])
# What is written to one place twice is not a sum.
few_elements(::Val{:scatter}, e) =
    issmall(e.inputs[3], e.outputs[1]) &&
    (e[:unique] || length(e[:update_window_dims]) == length(shape(e.inputs[3])))

adds(::Val) = false
adds(::Union{Val{:add_window},Val{:scatter_add}}) = true

starts_from_zeros(::Val, e, producer) = iszero_array(e.inputs[1], producer)
starts_from_zeros(::Val{:pad}, e, producer) = iszero_literal(e.inputs[2])
# Zeros of a batch are broadcast twice.
iszero_array(x::Literal, producer) = iszero_literal(x)
iszero_array(x::Var, producer) =
    haskey(producer, x) && name(producer[x].op) === :broadcast_in_dim &&
    iszero_array(producer[x].inputs[1], producer)

"The equation on x in the place of zeros."
added_to(::Val{:pad}, e, x) =
    Equation(AddWindow(), Atom[x, e.inputs[1], map(Literal, e[:low])...], e.outputs, Attributes(),
        e.source)
added_to(::Union{Val{:dynamic_update_slice},Val{:add_window}}, e, x) =
    Equation(AddWindow(), Atom[x, e.inputs[2:end]...], e.outputs, Attributes(), e.source)
added_to(::Union{Val{:scatter},Val{:scatter_add}}, e, x) =
    with(e; op = primitive(:scatter_add), inputs = Atom[x, e.inputs[2:end]...])

# z + y, where y is what a loop sums up from zeros: the loop begins with z, and one array is enough
# where z, the zeros and the sum would be three. Such sums are in derivatives of programs that read
# in a loop, element by element, what they read elsewhere too.

"""
    begin_sums(program) -> Program

The same Program, in which loops that sum windows from zeros, a place of its own in each trip, begin
with what is added to their result. Values change by rounding: another term comes first."""
function begin_sums(p::Program)
    any(hasbodies, p.equations) || return p
    p = with(p; equations = Equation[map_bodies(begin_sums, e) for e in p.equations])
    uses, equations = use_counts(p), p.equations
    summed_up = VarSet(v for e in equations if hasbodies(e) for v in e.outputs)
    for e in p.equations
        name(e.op) === :add && !isscalar(e.outputs[1]) || continue
        for (y, z) in (e.inputs, reverse(e.inputs))
            y in summed_up && !isscalar(y) && get(uses, y, 0) == 1 || continue
            begun = isscalar(z) ? with_first_number(equations, e, y, z) :
                    with_first_term(equations, e, y, z)
            begun === nothing || (equations = begun; break)
        end
    end
    with(p; equations = equations)
end

"""
The equations in which the loop that sums up `y` begins with `z`, and gives what `sum` gave, or
nothing where it cannot."""
function with_first_term(equations, sum::Equation, y::Var, z::Var)
    i = findfirst(e -> any(v -> v === y, e.outputs), equations)
    loop, j = equations[i], findfirst(e -> e.outputs == sum.outputs, equations)
    k = findfirst(v -> v === y, loop.outputs)
    definition = IdDict{Var,Equation}(v => e for e in equations[1:i-1] for v in e.outputs)
    begun = begun_with(loop.op, loop, k, z, definition)
    begun === nothing && return nothing
    between = equations[i+1:j-1]
    first_ = live_equations(between, Atom[z])
    made = VarSet(loop.outputs)
    (z in made || any(e -> any(a -> a in made, e.inputs), first_)) && return nothing
    outputs = copy(loop.outputs)
    outputs[k] = sum.outputs[1]
    needed = VarSet(v for e in first_ for v in e.outputs)
    others = filter(e -> !any(v -> v in needed, e.outputs), between)
    vcat(equations[1:i-1], first_, [with(begun; outputs = outputs)], others, equations[j+1:end])
end
"The same where a number is added to all elements."
function with_first_number(equations, sum::Equation, y::Var, z::Atom)
    b, j = Builder(Equation[], sum.source), findfirst(e -> e.outputs == sum.outputs, equations)
    spread = emit(b, :broadcast_in_dim, z; shape = shape(y), dims = Int[])
    with_first_term(vcat(equations[1:j-1], b.equations, equations[j:end]), sum, y, spread)
end

# A stack that is transposed after the loop that writes it, or before the one that reads it, with
# the axis of the trips in its place, is transposed trip by trip: in the body's loop nests, and not
# by a copy. The records that the halves of a batched loop share are such stacks: what lies side by
# side for one item does so for the items of a batch.

"""
    transpose_stacks(program) -> Program

The same Program, in which transpositions of the stacks that loops write and read are in the loops'
bodies, and those of what is concatenated are of the pieces."""
function transpose_stacks(p::Program)
    any(istransposition, p.equations) || any(hasbodies, p.equations) || return p
    p = transpose_pieces(dce(with(p; equations = with_single_transpositions(p.equations))))
    uses, sources, results = use_counts(p), IdDict{Var,Equation}(), IdDict{Var,Equation}()
    for e in p.equations
        istransposition(e) && e[:perm][1] == 0 && ndims(aval(e.outputs[1])) > 1 || continue
        sources[e.outputs[1]] = e
        uses[e.inputs[1]] == 1 && (results[e.inputs[1]] = e)
    end
    equations, made = Equation[], VarSet()
    for e in p.equations
        any(v -> v in made, e.outputs) && continue      # the loop before gives it now
        e = transpose_stacks(e.op, e, sources, results)
        push!(equations, map_bodies(transpose_stacks, e))   # of what is in there now, too
        union!(made, e.outputs)
        istransposition(e) || foreach(v -> delete!(sources, v), e.outputs)
    end
    dce(with(p; equations = equations))
end
istransposition(e::Equation) =
    name(e.op) === :transpose && e.inputs[1] isa Var && !isempty(e[:perm])

"The equations, in which a transposed transposition is one."
function with_single_transpositions(equations)
    made = IdDict{Var,Equation}()
    map(equations) do e
        istransposition(e) || return e
        inner = get(made, e.inputs[1], nothing)
        made[e.outputs[1]] = inner === nothing ? e : composed(e, inner)
    end
end
"The transposition `e` of what the transposition `inner` gives, as one."
composed(e::Equation, inner::Equation) =
    with(e; inputs = inner.inputs, attrs = Attributes(:perm => inner[:perm][e[:perm].+1]))

"The Program, in which the pieces of concatenations are transposed that nothing reads as they are."
function transpose_pieces(p::Program)
    uses, whole, b = use_counts(p), IdDict{Var,Equation}(), Builder()
    for e in p.equations
        a = istransposition(e) ? e.inputs[1] : nothing
        if a isa Var && uses[a] == 1 && haskey(whole, a)
            b.source, made = e.source, whole[a]
            pieces = Atom[emit(b, :transpose, x; perm = e[:perm]) for x in made.inputs]
            dim = findfirst(==(made[:dim]), e[:perm]) - 1
            push!(b.equations,
                with(made; inputs = pieces, outputs = e.outputs, attrs = Attributes(:dim => dim)))
        else
            name(e.op) === :concatenate && (whole[e.outputs[1]] = e)
            push!(b.equations, e)
        end
    end
    dce(with(p; equations = b.equations))
end

"The transposition of a slice along the first axis."
slices_transposed(e::Equation, slice::Atom, result::Var) =
    Equation(e.op, Atom[slice], Var[result], Attributes(:perm => e[:perm][2:end] .- 1), e.source)

# Control flow that traced values decide. Outside of a trace these are plain Julia.

"""
    JaxprAD.cond(condition, f, g, x...)

`condition ? f(x...) : g(x...)`, where the condition may be traced. Both give values of one
structure, with the same types and sizes.

    julia> t = trace(x -> JaxprAD.cond(x > 0, sqrt, abs2, x), 2.0);

    julia> t(4.0), t(-3.0)
    (2.0, 9.0)
"""
cond(condition::Bool, f, g, x...) = condition ? f(x...) : g(x...)
function cond(condition::TracedBool, @nospecialize(f), @nospecialize(g), x...)
    isknown(condition) && return cond(condition.atom.value, f, g, x...)
    on, off = trace_body(f, x...), trace_body(g, x...)
    same_results(on, off, "the two sides of `cond`")
    captured, bodies = joined_captures([off, on])
    operands = vcat(captured, leaf_atoms(x))
    index = emit_here(:convert_element_type, atom_here(condition); dtype = :i32)
    y = emit_here(primitive(:cond), vcat(Atom[index], operands),
        Attributes(:branches => bodies))
    from_atoms(on.result, y)
end

"""
    while_loop(condition, step, start)

`start`, `step(start)`, `step(step(start))` … up to the first for which `condition` is false.
Reverse mode runs natively (`jit`); `bound`, where it is given, is how many trips there are at most.

    julia> while_loop(x -> x < 100, x -> 2x, 3.0)
    192.0
"""
while_loop(@nospecialize(condition), @nospecialize(step), start; bound = nothing) =
    recording() === nothing ? plain_while(condition, step, start) :
    traced_while(condition, step, start, bound)

function plain_while(condition, step, start)
    while condition(start)
        start = step(start)
    end
    start
end

function traced_while(@nospecialize(condition), @nospecialize(step), start, bound)
    start = as_traced(start)
    test, body = trace_body(condition, start), trace_body(step, start)
    carries_itself(body, "while_loop")
    map(aval, test.program.outputs) == [TensorType(Bool)] && test.program.outputs[1] isa Var ||
        refuse_condition()
    types = Attributes(:cond_consts => length(test.captured),
        :body_consts => length(body.captured), :bound => bound, :cond => test.program,
        :body => body.program)
    y = emit_here(primitive(:while),
        vcat(capture_atoms(test), capture_atoms(body), leaf_atoms(start)), types)
    from_atoms(body.result, y)
end
refuse_condition() = untraceable(
    "the condition of while_loop must give one traced Bool: does it depend on what the loop " *
    "carries?")

"""
    scan(f, start, xs; reverse = false, length) -> (last, ys)

`(state, y) = f(state, x)` for each x in `xs`, from the state `start`; the `ys` are put together.
`xs` are arrays, also in tuples, named tuples and structs, of which x is a slice along the last
dimension (a column of a matrix, an element of a vector), and the `ys` are put together along a new
last one. Where there are no `xs`, `nothing`, `length` says how often.

    julia> scan((total, x) -> (total + x, total + x), 0.0, [1.0, 2.0, 3.0])
    (6.0, [1.0, 3.0, 6.0])
"""
function scan(@nospecialize(f), start, xs; reverse::Bool = false, length = nothing)
    n = trips(xs, length)
    recording() === nothing ? plain_scan(f, start, xs, n, reverse) :
    traced_scan(f, start, xs, n, reverse)
end

function traced_scan(@nospecialize(f), start, xs, n, reverse)
    start, (leaves, structure) = as_traced(start), flatten(as_traced(xs))
    samples = assembled(element_structure(structure), Any[slice_sample(x) for x in leaves])
    body = trace_body(f, start, samples)
    body.result isa Container && length(body.result.parts) == 2 ||
        untraceable("the function of scan must give the next state and a result")
    carry, kept = flatten(start)[1], body.result.parts[1]
    carries_itself(body, "scan", kept, length(carry))
    y = emit_here(primitive(:scan),
        vcat(capture_atoms(body), leaf_atoms(start), Atom[atom_here(x) for x in leaves]),
        Attributes(:length => n, :reverse => reverse, :consts => length(body.captured),
            :carry => length(carry), :unroll => 1, :body => body.program))
    k = length(carry)
    from_atoms(kept, y[1:k]), from_atoms(stacked_structure(body.result.parts[2]), y[k+1:end])
end

function trips(xs, n)
    found = unique(size(x, ndims(x)) for x in flatten(xs)[1] if x isa AbstractArray)
    n === nothing || push!(found, n)
    length(unique(found)) == 1 ? found[1] :
    throw(DimensionMismatch(isempty(found) ? "scan needs arrays, or a length" :
                            "scan over arrays whose last dimensions are $(join(found, ", "))"))
end

function plain_scan(f, state, xs, n, backwards)
    leaves, structure = flatten(xs)
    kinds, ys = element_structure(structure), Any[]
    for k in (backwards ? (n:-1:1) : (1:n))
        x = assembled(kinds, Any[plain_slice(v, k) for v in leaves])
        state, y = f(state, x)
        backwards ? pushfirst!(ys, y) : push!(ys, y)
    end
    parts = map(first ∘ flatten_state, ys)
    result = isempty(ys) ? StaticValue(nothing) : flatten_state(ys[1])[2]
    state, assembled(stacked_structure(result),
        Any[stacked_values([p[j] for p in parts]) for j in 1:(isempty(ys) ? 0 : length(parts[1]))])
end
plain_slice(x::AbstractVector, k) = x[nth_index(x, k)]
plain_slice(x, k) = as_array(selectdim(x, ndims(x), nth_index(x, k)))
nth_index(x, k) = first(axes(x, ndims(x))) + k - 1
stacked_values(x::Vector{<:Number}) = [x...]
stacked_values(x) = cat(x...; dims = ndims(x[1]) + 1)

# Slices of vectors are numbers, and numbers put together are vectors.
slice_sample(x) =
    ndims(x) == 1 ? zero(eltype(x)) :
    SampleArray{eltype(x),ndims(x) - 1}(size(x)[1:end-1])
"An array of which type and size matter alone."
struct SampleArray{T,N} <: AbstractArray{T,N}
    size::NTuple{N,Int}
end
Base.size(x::SampleArray) = x.size
element_structure(s::Structure) = s
element_structure(::ArrayLeaf) = ArrayLeaf()
element_structure(s::Container) = Container(s.type, map(element_structure, s.parts))
stacked_structure(::Union{NumberLeaf,ArrayLeaf}) = ArrayLeaf()
stacked_structure(s::Structure) = s
stacked_structure(s::Container) = Container(s.type, map(stacked_structure, s.parts))

# ---- bodies

"The same value, with its numbers and arrays traced."
function as_traced(x)
    leaves, s = flatten_state(x)
    assembled(s, Any[
        istraced(v) && !(v isa AbstractArray) ? v :
        v isa Number ? traced_type(typeof(v))(v) : traced(v) for v in leaves
    ])
end
leaf_atoms(x) = Atom[operand_atom(v) for v in flatten(x)[1]]
operand_atom(x) = atom_here(x)
capture_atoms(t::TracedFunction) =
    (r = open_recording(); Atom[value_atom(r, v) for v in t.captured])
from_atoms(s::Structure, atoms) = assembled(s, Any[
    kind isa NumberLeaf ? traced_number(a) : traced_array(a)
    for (kind, a) in zip(leaf_kinds(s), atoms)
])

"What several bodies capture, in one list, and the bodies with inputs for all of it."
function joined_captures(functions)
    captured = reduce(vcat, map(capture_atoms, functions))
    counts = map(t -> length(t.captured), functions)
    bodies = map(eachindex(functions), functions) do k, t
        p, own = t.program, counts[k]
        others = [Var(aval(a)) for a in captured]
        from = sum(counts[1:k-1])
        others[from+1:from+own] = p.inputs[1:own]
        with(p; inputs = vcat(others, p.inputs[own+1:end]))
    end
    captured, Vector{Program}(bodies)
end

result_types(t::TracedFunction) = TensorType[aval(a) for a in t.program.outputs]
same_results(a, b, what) =
    a.result == b.result && result_types(a) == result_types(b) ||
    untraceable("$what give values of different structure, types or sizes: " *
                "$(join(result_types(a), ", ")) and $(join(result_types(b), ", "))")
function carries_itself(t::TracedFunction, what, kept = t.result, n = length(t.program.outputs))
    start = TensorType[aval(v) for v in t.program.inputs[length(t.captured)+1:end]][1:n]
    given = t.arguments.parts[1]
    kept == given && result_types(t)[1:n] == start || untraceable(
        "what $what carries changes its structure, type or size: from " *
        "$(join(start, ", ")) to $(join(result_types(t)[1:n], ", "))")
end

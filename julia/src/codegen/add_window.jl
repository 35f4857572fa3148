# x + pad(u, 0) for a small u, as unrolled loops over an array's elements have it in their derivatives, adds to a part of x in place.

"The sum of an array and a smaller one placed at `start`; only code generation knows it."
struct AddWindow <: Primitive end
name(::AddWindow) = :add_window
reads_elements(::AddWindow, eqn, k) = k == 2
overwrites(::AddWindow, eqn) = 1

# A window of more than this part of the array is added like any other operand.
const SMALL_WINDOW = 1 // 8

function windows_added(p::Program)
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    uses = use_counts(p)
    window(a) = (e = a isa Var && uses[a] == 1 ? get(producer, a, nothing) : nothing; e !== nothing && is_small_window(e.op, e) ? e : nothing)
    equations = map(p.equations) do e
        name(e.op) === :add || return e
        x, y = e.inputs
        w = window(y)
        w === nothing && ((x, y) = (y, x); w = window(y))
        w === nothing || isempty(shape(x)) ? e :
            with(e; op = AddWindow(), inputs = Atom[x, w.inputs[1]], attrs = Attributes(:start => Int.(w[:low])))
    end
    dce(with(p; equations = equations))
end
is_small_window(op::Primitive, e) = false
is_small_window(::Pad, e) = iszero_literal(e.inputs[2]) && all(==(0), e[:interior]) && all(>=(0), e[:low]) && all(>=(0), e[:high]) &&
    size_of(shape(e.inputs[1])) <= SMALL_WINDOW * size_of(shape(e.outputs[1]))

function emit_step!(op::AddWindow, s::Frame, e)
    x, u, v = e.inputs[1], e.inputs[2], e.outputs[1]
    m, strides = taken_over!(s, v, x), row_strides(sizes(v))
    n = sizes(u)
    at = Affine(copy(strides), sum(strides .* e[:start]), [])
    emit_nest!(s, n, Store[], [Reduce(u, primitive(:reduce_sum), dtype(v), falses(length(n)), m.pointer, at, :none)])
end

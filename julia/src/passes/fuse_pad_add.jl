# x + pad(u, 0) for a small u, as unrolled loops over an array's elements have it in their
# derivatives, adds to a part of x in place. The pass is about `add` and `pad`.

"The sum of an array and a smaller one placed at `start`; only code generation knows it."
struct AddWindow <: Primitive end
name(::AddWindow) = :add_window
reads_elements(::AddWindow, eqn, k) = k == 2
overwrites(::AddWindow, eqn) = 1

"""
    fuse_pad_add(program) -> Program

The same Program, in which `x + pad(u, 0)` for a u of at most an eighth of x is an `AddWindow`,
where nothing else needs the padded array."""
function fuse_pad_add(p::Program)
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    uses = use_counts(p)
    window(a) =
        (e = a isa Var && uses[a] == 1 ? get(producer, a, nothing) : nothing;
        e !== nothing && is_small_window(e) ? e : nothing)
    equations = map(p.equations) do e
        name(e.op) === :add || return e
        x, y = e.inputs
        w = window(y)
        w === nothing && ((x, y) = (y, x); w = window(y))
        w === nothing || isempty(shape(x)) ? e :
        with(e; op = AddWindow(), inputs = Atom[x, w.inputs[1]],
            attrs = Attributes(:start => Int.(w[:low])))
    end
    dce(with(p; equations = equations))
end
is_small_window(e::Equation) =
    name(e.op) === :pad && iszero_literal(e.inputs[2]) && all(==(0), e[:interior]) &&
    all(>=(0), e[:low]) && all(>=(0), e[:high]) &&
    size_of(shape(e.inputs[1])) <= SMALL_WINDOW * size_of(shape(e.outputs[1]))

# What a rule says of its primitive's native code.

"""
Where a variable's value is while a kernel runs.

- `Register`: rank 0, in a local variable.
- `Memory`: row-major at the pointer that a local variable (`Ptr{T}`) holds; `owned` when the kernel may overwrite it after its last use.
- `Virtual`: nowhere; each element is computed where it is read.
"""
abstract type Storage end
struct Register <: Storage
    symbol::Symbol
end
struct Memory <: Storage
    pointer::Symbol
    type::TensorType
    owned::Bool
end
struct Virtual <: Storage
    equation::Equation
    slot::Int
end

"""
    isfusable(op, eqn) -> Bool

Whether any single element of the results can be computed alone, from few elements of the operands: then `element` does."""
isfusable(op::Primitive, eqn) = false

"""
    element(op, nest, eqn, slot, index::Vector{Affine}) -> Symbol or number

Adds to a loop nest what computes the element of result `slot` at `index`."""
function element end

"Whether the primitive reads each operand element at the place of its result's element (operands and results have one shape)."
ispointwise(op::Primitive) = false

"""
    reads_elements(op, eqn, k) -> Bool

Whether `emit_step!` or `element` is content with operand `k` element by element; otherwise the operand must be in memory."""
reads_elements(op::Primitive, eqn, k) = isfusable(op, eqn)

"What computing one element costs beside its operands' elements, an addition being 1."
cost(op::Primitive, eqn) = 0

"""
    emit_step!(op, frame, eqn)

Emits the code of an equation that stands for itself (is neither fusable nor a reduction), and gives each result its `Storage`."""
emit_step!(op::Primitive, frame, eqn) = throw(UnsupportedPrimitive(string(name(op)), "has no native kernel", eqn.source))

"""
    overwrites(op, eqn) -> 0 or an operand position

The operand whose memory the result may take over when nobody needs the operand afterwards."""
overwrites(op::Primitive, eqn) = 0

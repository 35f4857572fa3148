# Elementwise primitives.

isfusable(op::Union{Elementwise,MultiplyAdd}, eqn) = true
ispointwise(op::Union{Elementwise,MultiplyAdd}) = true
element(::MultiplyAdd, n::Nest, eqn, slot, index) =
    apply!(n, muladd, dtype(eqn.outputs[1]), Any[pointwise(n, a, index) for a in eqn.inputs])
function element(op::Elementwise, n::Nest, eqn, slot, index)
    operands = Any[pointwise(n, a, index) for a in eqn.inputs]
    f, T = kernel(op, eqn.attrs), dtype(eqn.outputs[1])
    half = any(ishalf(dtype(a)) for a in eqn.inputs) && !works_on_bits(op)
    half ? apply!(n, Widened(f), T, operands) : calculate!(n, f, T, operands)
end

"What computes f(operands...); small powers are products, which the compiler has less to say to."
calculate!(n::Nest, @nospecialize(f), T, operands) = apply!(n, f, T, operands)
calculate!(n::Nest, ::IntegerPower{2}, T, (x,)) = apply!(n, *, T, Any[x, x])
calculate!(n::Nest, ::IntegerPower{3}, T, (x,)) =
    apply!(n, *, T, Any[calculate!(n, IntegerPower{2}(), T, (x,)), x])

# Elementwise primitives of two operands. Tangents: (t, y, x1, x2) -> ∂y/∂xᵢ · t.

elementwise(:add, +; tangents = ((t, y, a, b) -> t, (t, y, a, b) -> t),
            transpose = (ȳ, a, b) -> (islinear(a) ? ȳ : nothing, islinear(b) ? ȳ : nothing))
elementwise(:sub, -; tangents = ((t, y, a, b) -> t, (t, y, a, b) -> -t),
            transpose = (ȳ, a, b) -> (islinear(a) ? ȳ : nothing, islinear(b) ? -ȳ : nothing))
elementwise(:mul, *; tangents = ((t, y, a, b) -> t * b, (t, y, a, b) -> a * t),
            transpose = (ȳ, a, b) -> islinear(a) ? (ȳ * b, nothing) : (nothing, a * ȳ))
elementwise(:div, /; tangents = ((t, y, a, b) -> t / b, (t, y, a, b) -> -(t * (y / b))),
            transpose = (ȳ, a, b) -> (ȳ / b, nothing))
elementwise(:lt, <; result = bool_dtype)

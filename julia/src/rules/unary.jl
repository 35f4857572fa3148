# Elementwise primitives of one operand. Tangents: (t, y, x) -> dy/dx · t.

elementwise(:neg, -; tangents = ((t, y, x) -> -t,), transpose = (ȳ, x) -> (-ȳ,))
elementwise(:sin, sin; tangents = ((t, y, x) -> t * cos(x),))
elementwise(:cos, cos; tangents = ((t, y, x) -> -(t * sin(x)),))
elementwise(:exp, exp; tangents = ((t, y, x) -> t * y,))
elementwise(:tanh, tanh; tangents = ((t, y, x) -> t * (1 - y * y),))
elementwise(:floor, floor)

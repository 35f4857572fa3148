# Calls of functions that tests define, as `julia_function` of Python's makes them.

using JaxprAD.Functions: Call, Views, read_tree, slotted

function call_of(f, arguments, result; layout = Views(), options...)
    template, x = slotted(read_tree(arguments))
    results, y = slotted(read_tree(result))
    Call(f, template, results, layout, x, y; options...)
end

"(A, s, n) -> (B, k, t): arrays, numbers and integers in and out."
mixture(A, s, n) = (B = s .* A .^ 2, k = n + 1, t = sum(sin.(A)) * s)
function mixture!(out, A, s, n)
    out.B .= s .* A .^ 2
    out.k[] = n + 1
    out.t[] = sum(sin.(A)) * s
    nothing
end
const MIXTURE = "( f64[2,3] f64[] i32[] )", "{ B f64[2,3] k i32[] t f64[] }"

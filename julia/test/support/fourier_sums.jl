# Discrete Fourier transforms by the sums that define them; sign is that of the exponent.

function direct(x, sign)
    n = length(x)
    [cis(sign * 2π * mod(j * k, n) / n) for k in 0:n-1, j in 0:n-1] * x
end
"The transform along some dimensions, one after the other."
by_sums(x, dims, sign = -1) =
    foldl((y, d) -> mapslices(v -> direct(v, sign), y; dims = d), dims; init = complex(x))

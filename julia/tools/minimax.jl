# Writes src/math/coefficients.jl: julia tools/minimax.jl > src/math/coefficients.jl
#
# Each function there is the polynomial P that makes the largest weighted error w·|f - P| over an
# interval smallest (Remez 1934, by exchange of all extrema on a grid); the error above it is that
# of the rounded coefficients.

using LinearAlgebra
setprecision(BigFloat, 300)

"Points that crowd at the ends as Chebyshev's do."
grid(a, b, n) = [(a + b) / 2 - (b - a) / 2 * cos(big(π) * (k - 1) / (n - 1)) for k in 1:n]

"The extrema of alternating sign among a grid's errors, `count` of them."
function alternation(e, count)
    points = Int[]
    for k in eachindex(e)
        if isempty(points) || signbit(e[k]) != signbit(e[last(points)])
            push!(points, k)
        elseif abs(e[k]) > abs(e[last(points)])
            points[end] = k
        end
    end
    # What is too much goes where the errors are smallest: an end, or a neighbouring pair, which
    # leaves the signs alternating.
    while length(points) > count
        if length(points) == count + 1
            abs(e[first(points)]) < abs(e[last(points)]) ? popfirst!(points) : pop!(points)
        else
            k = argmin([max(abs(e[points[k]]), abs(e[points[k+1]])) for k in 1:length(points)-1])
            deleteat!(points, k:k+1)
        end
    end
    points
end

"The best P(x) = Σ cᵢ xⁱ, i < n, for values f with weights w on the grid x."
function remez(x, f, w, n)
    solve(points) = [x[p]^(i - 1) * w[p] for p in points, i in 1:n]
    points = round.(Int, range(1, length(x); length = n + 1))
    best, smallest = zeros(BigFloat, n), big(Inf)
    for _ in 1:30
        matrix = hcat(solve(points), [(-1)^k * big(1.0) for k in 1:n+1])
        solution = matrix \ [f[p] * w[p] for p in points]
        c, level = solution[1:n], abs(solution[end])
        e = [w[k] * (f[k] - evalpoly(x[k], c)) for k in eachindex(x)]
        if maximum(abs, e) < smallest
            best, smallest = c, maximum(abs, e)
        end
        smallest <= 1.001level && break
        found = alternation(e, n + 1)
        length(found) == n + 1 || break
        points = found
    end
    best
end

"""
The best coefficients rounded to T, and the binary logarithm of the largest weighted
error that is left."""
function fit(T, f, a, b, n; weight = x -> 1)
    x = grid(big(a), big(b), 40n + 101)
    keep = findall(v -> abs(v) > 1e-30, x)    # where quotients of differences are not yet noise
    x = x[keep]
    wanted, w = map(f, x), abs.(map(weight, x))
    c = map(T, remez(x, wanted, w, n))
    e = maximum(w[k] * abs(wanted[k] - evalpoly(x[k], big.(c))) for k in eachindex(x))
    Tuple(c), Float64(log2(e))
end

"Prints P as a Julia function, with coefficients in the order of ascending powers."
function table(name, T, f, a, b, n; weight = x -> 1)
    c, e = fit(T, f, a, b, n; weight = weight)
    println("# 2^", round(e; digits = 1))
    print("@inline $name(x::$T) = @polynomial(x, ")
    width = T === Float32 ? 7 : 4
    for k in 1:width:length(c)
        print(k == 1 ? "" : ",\n    ", join(map(repr, c[k:min(k + width - 1, end)]), ", "))
    end
    println(")")
end
both(name, f, a, b, n32, n64; options...) =
    (table(name, Float32, f, a, b, n32; options...); table(name, Float64, f, a, b, n64; options...))

# MPFR's, which Base has no names for.
for f in (:erf, :erfc, :gamma)
    @eval function $f(x::BigFloat)
        z = BigFloat()
        ccall(
            ($(QuoteNode(Symbol(:mpfr_, f))),
                $(isdefined(Base.MPFR, :libmpfr) ? Base.MPFR.libmpfr : "libmpfr")), Int32,
            (Ref{BigFloat}, Ref{BigFloat}, Int32), z, x, 0)
        z
    end
end

root(x) = sqrt(abs(x))
println(
    "# Minimax polynomials, written by tools/minimax.jl; above each the largest error " *
    "relative to the function it serves."
)
println("\n# (eʳ - 1 - r) / r² for |r| ≤ ln(2)/2")
both("exp_tail", r -> (expm1(r) - r) / r^2, -0.347, 0.347, 5, 10; weight = r -> r^2 / exp(r))
println("\n# (2ʳ - 1) / r for |r| ≤ 1/2")
both("exp2_tail", r -> expm1(r * log(big(2))) / r, -0.501, 0.501, 6, 11; weight = r -> r / exp2(r))
println("\n# (log(1+f) - f + f²/2) / f³ for 1+f from √½ to √2")
table("log_tail", Float32, f -> (log1p(f) - f + f^2 / 2) / f^3, -0.2930, 0.4143, 9;
    weight = f -> f^3 / log1p(f))
println("\n# 2 atanh(s) = 2s + s w P(w), w = s², for |s| ≤ (√2 - 1) / (√2 + 1)")
table("log_tail", Float64, w -> (2atanh(root(w)) - 2root(w)) / (root(w) * w), 0, 0.02945, 7;
    weight = w -> w / 2)
println("\n# The same from its third term on: 2 atanh(s) = 2s (1 + w/3 + w² P(w))")
table("atanh_tail", Float64, w -> (atanh(root(w)) / root(w) - 1 - w / 3) / w^2, 0, 0.02945, 9;
    weight = w -> w^2)
println("\n# (sin r - r) / r³ and (cos r - 1 + r²/2) / r⁴ in s = r², |r| ≤ π/4")
both("sin_tail", s -> (sin(root(s)) - root(s)) / (root(s) * s), 0, 0.63, 3, 6;
    weight = s -> s * root(s) / sin(root(s)))
both("cos_tail", s -> (cos(root(s)) - 1 + s / 2) / s^2, 0, 0.63, 3, 6; weight = s -> s^2)
println("\n# (sinh x - x) / x³ in x², |x| ≤ 1")
both("sinh_tail", s -> (sinh(root(s)) - root(s)) / (root(s) * s), 0, 1, 4, 7;
    weight = s -> s * root(s) / sinh(root(s)))
println("\n# (tanh x - x) / x³ in x², |x| ≤ 0.6")
both("tanh_tail", s -> (tanh(root(s)) - root(s)) / (root(s) * s), 0, 0.37, 6, 13;
    weight = s -> s * root(s) / tanh(root(s)))
println("\n# (atan t - t) / t³ in t², |t| ≤ tan(π/8)")
both("atan_tail", s -> (atan(root(s)) - root(s)) / (root(s) * s), 0, 0.17163, 4, 11;
    weight = s -> s * root(s) / atan(root(s)))
println("\n# (asin x - x) / x³ in x², |x| ≤ 1/2")
both("asin_tail", s -> (asin(root(s)) - root(s)) / (root(s) * s), 0, 0.25, 5, 12;
    weight = s -> s * root(s) / asin(root(s)))
println("\n# erf(x)/x - 1 in x², |x| ≤ 1")
both("erf_tail", s -> erf(root(s)) / root(s) - 1, 0, 1, 7, 13; weight = s -> root(s) / erf(root(s)))
println("\n# -log erfc x for x from 1 to 4, where 4 is as good as infinity for Float32's erf")
table("minus_log_erfc", Float32, x -> -log(erfc(x)), 1, 4, 8; weight = x -> erfc(x) / erf(x))
println("\n# (1 + 2x) exp(x²) erfc x in t = (x - 4)/(x + 4), x ≥ 1/2")
from_t(t) = 4 * (1 + t) / (1 - t)
wanted_erfc(t) = (x = from_t(t); (1 + 2x) * exp(x^2) * erfc(x))
table("scaled_erfc", Float32, wanted_erfc, -0.778, 0.46, 10; weight = t -> 1 / wanted_erfc(t))
table("scaled_erfc", Float64, wanted_erfc, -0.778, 0.75, 21; weight = t -> 1 / wanted_erfc(t))

"erf⁻¹ of 1 - q by Newton's method from Winitzki's closed form (2008; relative error 2e-3)."
function erfc_inv(q)
    l, a = log(q * (2 - q)), big(0.147)
    z = sqrt(sqrt((2 / (π * a) + l / 2)^2 - l / a) - (2 / (π * a) + l / 2))
    for _ in 1:9
        z += (erfc(z) - q) * sqrt(big(π)) / 2 * exp(z^2)
    end
    z
end
"erf⁻¹(x)/x where 1 - x² = e⁻ʷ."
wanted_erf_inv(w) = (w = abs(w); x = sqrt(-expm1(-w)); erfc_inv(exp(-w) / (1 + x)) / x)
println(
    "\n# erf⁻¹(x)/x by w = -log(1 - x²): in w - 3 for w ≤ 6, in √w - 3 and √w - 5 beyond " *
    "(the ranges of Giles 2010)"
)
both("erf_inv_middle", v -> wanted_erf_inv(v + 3), -2.9999999, 3.001, 11, 24;
    weight = v -> 1 / wanted_erf_inv(v + 3))
tail(centre) = v -> wanted_erf_inv((v + centre)^2)
table("erf_inv_outer", Float32, tail(3), sqrt(big(5.999)) - 3, 1.1, 8; weight = v -> 1 / tail(3)(v))
table("erf_inv_outer", Float64, tail(3), sqrt(big(5.999)) - 3, 1.001, 23;
    weight = v -> 1 / tail(3)(v))
table("erf_inv_far", Float64, tail(5), -1.001, 1.1, 19; weight = v -> 1 / tail(5)(v))
println("\n# log Γ(2+z) / z, |z| ≤ 1/2")
table("lgamma_tail", Float64, z -> log(gamma(2 + z)) / z, -0.5, 0.5, 19)

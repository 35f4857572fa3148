# Functions of matrices that are not those of their elements: exp, roots, powers, the pseudoinverse.

# ---- of any matrix

# The diagonal approximant of exp of order 13, and the largest norm at which it has the precision of
# double. Higham, The scaling and squaring method for the matrix exponential revisited, SIAM J.
# Matrix Anal. Appl. 26 (2005).
const EXP_COEFFICIENTS =
    [1.0; accumulate((b, k) -> b * (14 - k) / (k * (27 - k)), 1:13; init = 1.0)]
const EXP_RADIUS = 5.371920351148152

"""
    exp(A)

The exponential of a square matrix, by scaling and squaring: exp(A / 2^s) is a quotient of two
polynomials, and is squared s times in a loop."""
function Base.exp(x::MatrixOfTraced)
    a = check_square_matrix(x)
    T = dtype(a)
    size_ = opnorm(a, 1)
    excess = log2(size_ / real(T)(EXP_RADIUS))
    s = Int(clamp(ceil(select(isfinite(excess), excess, 0)), 0, 1100))
    a = a .* exp2(-as_dtype(real(T), s))
    _, y = while_loop(((k, y),) -> k > 0, ((k, y),) -> (k - 1, y * y), (s, exp_quotient(a)))
    y
end
function exp_quotient(a)
    b(k) = real(dtype(a))(EXP_COEFFICIENTS[k+1])
    identity_ = one_matrix(a)
    a2 = a * a
    a4 = a2 * a2
    a6 = a2 * a4
    even(k) = b(k) .* a2 .+ b(k + 2) .* a4 .+ b(k + 4) .* a6
    odd = a * (a6 * even(9) .+ even(3) .+ b(1) .* identity_)
    whole = a6 * even(8) .+ even(2) .+ b(0) .* identity_
    (whole .- odd) \ (whole .+ odd)
end

Base.:^(a::MatrixOfTraced, n::Integer) = matrix_power(a, n)
Base.:^(a::TracedSymmetric, n::Integer) = Symmetric(matrix_power(traced(a), n))
function matrix_power(a, n)
    require_square(a)
    n < 0 ? squared_up(inv(a), -n) : n == 0 ? traced(one_matrix(a)) : squared_up(a, n)
end
squared_up(a, n) =
    n == 1 ? a : isodd(n) ? a * squared_up(a, n - 1) : (half = squared_up(a, n ÷ 2); half * half)

"""
    pinv(A; rtol = ε min(size(A)))

The pseudoinverse: singular values up to `rtol` times the largest count as zero. Its derivative is
that of a matrix whose rank does not change: Golub and Pereyra, The differentiation of
pseudo-inverses, SIAM J. Numer. Anal. 10 (1973)."""
LinearAlgebra.pinv(a::MatrixOfTraced; rtol::Real = eps(real(dtype(float_matrix(a)))) *
                                                   minimum(size(a))) =
    custom_jvp(a -> pseudoinverse(a, rtol), ((a,), (ȧ,)) -> pseudoinverse(a, rtol, ȧ))(
        float_matrix(a))
function pseudoinverse(a, rtol)
    u, s, v = svd(a)
    v * (reciprocals(s, rtol) .* adjoint(u))
end
function pseudoinverse(a, rtol, ȧ)
    p = pseudoinverse(a, rtol)
    ph, ȧh = traced(adjoint(p)), traced(adjoint(ȧ))
    left, right = ȧh * (ph * p), p * (ph * ȧh)
    p, (left .- p * (a * left)) .+ (right .- (right * a) * p) .- p * ȧ * p
end

# ---- of symmetric and Hermitian matrices

"""
f(A) = Q f(Λ) Qᴴ for A = Q Λ Qᴴ, with the derivative Q (Φ ∘ (Qᴴ Ȧ Q)) Qᴴ, where Φ has the divided
differences of f between the eigenvalues: finite where eigenvalues are equal, unlike those of Q.
`smooth(λ, μ)` says how far apart λ and μ may be for a mean of f′ to be taken for them. Higham,
Functions of Matrices, SIAM (2008), theorem 3.11."""
spectral(f, smooth) = custom_jvp(function (a)
    λ, q = eigen(Hermitian(a))
    with_eigenvalues(f.(λ), q)
end, function ((a,), (ȧ,))
    λ, q = eigen(Hermitian(a))
    φ = divided_differences(f, smooth, λ)
    with_eigenvalues(f.(λ), q), q * (φ .* (adjoint(q) * ȧ * q)) * adjoint(q)
end)
with_eigenvalues(λ, q) = q * (λ .* adjoint(q))

# Gauss's rule of five nodes, for the mean of f′ between two eigenvalues.
const GAUSS_NODES = let a = sqrt(5 - 2sqrt(10 / 7)) / 3, b = sqrt(5 + 2sqrt(10 / 7)) / 3
    (0.0, a, -a, b, -b)
end
const GAUSS_WEIGHTS = let a = (322 + 13sqrt(70)) / 1800, b = (322 - 13sqrt(70)) / 1800
    (64 / 225, a, a, b, b)
end
function divided_differences(f, smooth, λ)
    T = dtype(λ)
    λ, μ = reshape(λ, :, 1) .+ zero(T) .* permutedims(λ), permutedims(λ) .+ zero(T) .* λ
    close = abs.(λ .- μ) .<= smooth.(λ, μ)
    middle, half = (λ .+ μ) ./ 2, select.(close, λ .- μ, 0) ./ 2
    slope(x) = jvp(v -> f.(v), (x,), (one.(x),))[2]
    mean = sum(T(w) .* slope(middle .+ T(t) .* half) for (t, w) in zip(GAUSS_NODES, GAUSS_WEIGHTS))
    apart = select.(close, 1, λ .- μ)
    select.(close, mean, (f.(λ) .- f.(μ)) ./ apart)
end
# Entire functions are smooth anywhere, the others less and less towards zero, where they end.
smooth_anywhere(λ, μ) = one(λ) / 2
smooth_above_zero(λ, μ) = min(λ, μ) / 4

for (f, smooth) in ((:exp, :smooth_anywhere), (:sin, :smooth_anywhere), (:cos, :smooth_anywhere),
    (:sinh, :smooth_anywhere), (:cosh, :smooth_anywhere), (:log, :smooth_above_zero),
    (:sqrt, :smooth_above_zero))
    @eval Base.$f(a::TracedSymmetric) = Hermitian(spectral($f, $smooth)(traced(a)))
end
Base.:^(a::TracedSymmetric, p::Real) =
    isinteger(p) ? a^Int(p) : Hermitian(spectral(x -> x^p, smooth_above_zero)(traced(a)))

# ---- what is not known

for f in (:log, :sqrt, :sin, :cos, :tan, :sinh, :cosh, :tanh)
    @eval Base.$f(a::MatrixOfTraced) = symmetric_only($(string(f)))
end
Base.:^(a::MatrixOfTraced, p::Real) = isinteger(p) ? a^Int(p) : symmetric_only("a power")
LinearAlgebra.eigen(a::MatrixOfTraced) = symmetric_only("eigen")
LinearAlgebra.eigvals(a::MatrixOfTraced) = symmetric_only("eigvals")
# Of matrices of any type Julia 1.12 calls the last two without end.
unknown(what) = untraceable("$what of a traced matrix is not known")
LinearAlgebra.schur(a::MatrixOfTraced) = unknown("schur")
LinearAlgebra.hessenberg(a::MatrixOfTraced) = unknown("hessenberg")
LinearAlgebra.lyap(a::MatrixOfTraced, c::AbstractMatrix) = unknown("lyap")
LinearAlgebra.sylvester(a::MatrixOfTraced, b::AbstractMatrix, c::AbstractMatrix) =
    unknown("sylvester")
symmetric_only(what) =
    untraceable("$what of a traced matrix is known for `Symmetric(A)` and `Hermitian(A)` only")

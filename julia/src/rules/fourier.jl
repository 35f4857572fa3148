# fft: discrete Fourier transforms over the last axes, whose lengths are `fft_lengths`. fft and ifft
# are complex; rfft keeps, of a real array's transform, the n ÷ 2 + 1 first along the last axis, and
# irfft is its inverse. All are linear.

@primitive FourierTransform fft(fft_type, fft_lengths)

linear_operands(::FourierTransform, eqn) = (1,)

function infer(op::FourierTransform, types, attrs)
    x, kind, n = types[1], attrs[:fft_type], attrs[:fft_lengths]
    kind in (:fft, :ifft, :rfft, :irfft) || infer_error(op, "there is no transform $kind")
    isstatic(n) && 1 <= length(n) <= ndims(x) ||
        infer_error(op, "lengths $n do not fit $(type_text(x))")
    (kind === :rfft ? x.dtype in (Float32, Float64) : iscomplex(x.dtype)) ||
        infer_error(op, "$kind does not take $(type_text(x))")
    full, half = Dim[n...], Dim[n[1:end-1]..., n[end] == 0 ? 0 : n[end] ÷ 2 + 1]
    batch = x.shape[1:end-length(n)]
    x.shape[end-length(n)+1:end] == (kind === :irfft ? half : full) ||
        infer_error(op, "lengths $n do not fit $(type_text(x))")
    kind === :rfft ? [TensorType(complex_dtype(x.dtype), Dim[batch..., half...])] :
    kind === :irfft ? [TensorType(real_dtype(x.dtype), Dim[batch..., full...])] : [x]
end

function evaluate(::FourierTransform, x, attrs, types)
    kind, n = attrs[:fft_type], attrs[:fft_lengths]
    isempty(x[1]) && return [zero(uninitialized(types[1]))]
    sign = kind in (:fft, :rfft) ? -1 : 1
    y = complex(x[1])
    for axis in ndims(y)-length(n):ndims(y)-2
        y = transform_along(v -> dft(v, sign), y, axis)
    end
    last_axis =
        kind === :rfft ? v -> dft(v, sign)[1:n[end]÷2+1] :
        kind === :irfft ? v -> real(dft(hermitian(v, n[end]), sign)) :
        v -> dft(v, sign)
    y = transform_along(last_axis, y, ndims(y) - 1)
    [convert(Array{types[1].dtype}, sign == 1 ? y ./ prod(n) : y)]
end

function transform_along(f, x::Array, axis)
    lines = threefold(x, axis)
    y = [f(lines[i, :, k]) for i in axes(lines, 1), k in axes(lines, 3)]
    m = length(y[1])
    result = [y[i, k][j] for i in axes(y, 1), j in 1:m, k in axes(y, 2)]
    d = ndims(x) - axis
    reshape(result, ntuple(e -> e == d ? m : size(x, e), ndims(x)))
end

"""
The n values of which the first half is given, the others being their mirror images' conjugates;
what must be real is taken as real."""
hermitian(v, n) =
    [2k == 0 || 2k == n ? complex(real(v[k+1])) : 2k < n ? v[k+1] : conj(v[n-k+1]) for k in 0:n-1]

# Σⱼ xⱼ e^(± 2πi jk / n) by the smallest prime factor p of n: p transforms of every p-th element,
# then p terms for each k (Cooley and Tukey 1965). Where p is large, by convolution.
function dft(x::Vector{C}, sign) where {C}
    n = length(x)
    p = something(findfirst(p -> n % p == 0, 2:isqrt(n)), n - 1) + 1
    p > 1 || return x
    p > LARGE_PRIME && return dft_by_convolution(x, sign)
    parts = p == n ? [x[q:q] for q in 1:n] : [dft(x[q:p:n], sign) for q in 1:p]
    roots = C[root_of_unity(C, j, n, sign) for j in 0:n-1]
    C[sum(roots[q*k%n+1] * parts[q+1][k%(n÷p)+1] for q in 0:p-1) for k in 0:n-1]
end
const LARGE_PRIME = 64      # above, three transforms of twice the length take less than p terms

root_of_unity(::Type{C}, numerator, n, sign) where {C} =
    C(cospi(2numerator / n), sign * sinpi(2numerator / n))
# e^(± πi j²/n), with j² modulo 2n, so that the angles are exact.
chirp(C, n, sign) = C[root_of_unity(C, powermod(j, 2, 2n), 2n, sign) for j in 0:n-1]

# As jk = (j² + k² - (k-j)²)/2, the sum is cₖ Σⱼ (xⱼ cⱼ) c̄ₖ₋ⱼ with cⱼ = e^(± πi j²/n): a
# convolution, by transforms of a length m ≥ 2n - 1 whose factors are small (Bluestein 1970). In
# double precision, which makes up for what the three transforms lose.
function dft_by_convolution(x::Vector{C}, sign) where {C}
    n = length(x)
    m, c = nextpow(2, 2n - 1), chirp(ComplexF64, n, sign)
    padded = vcat(x .* c, zeros(ComplexF64, m - n))
    filter = vcat(conj(c), zeros(ComplexF64, m - 2n + 1), conj(reverse(c[2:end])))
    sums = conj(dft(conj(dft(padded, -1) .* dft(filter, -1)), -1)) ./ m
    C.(sums[1:n] .* c)
end

# Σⱼₖ ȳₖ ωʲᵏ xⱼ is symmetric in j and k, so fft and ifft are their own transposes. With z ↦ Re z,
# rfft is Re ∑ₖ ȳₖ ωʲᵏ over half the k, which is N · irfft of conj ȳ, where irfft counts every k
# that has a mirror image twice; irfft the other way round.
function transpose(op::FourierTransform, b, eqn, ȳ, x)
    kind, n, ȳ = eqn[:fft_type], eqn[:fft_lengths], Traced(b, ȳ[1])
    other(v, kind) = apply(:fft, v; fft_type = kind, fft_lengths = n)
    N = prod(n)
    kind === :rfft &&
        return [(N * other((z = conj(ȳ); where_(unpaired(z, n[end]), z, z / 2)), :irfft)).atom]
    kind === :irfft &&
        return [conj((z = other(ȳ, :rfft) / N; where_(unpaired(z, n[end]), z, 2 * z))).atom]
    [other(ȳ, kind).atom]
end

"""
Which elements along the last axis of half a transform of length n have no mirror
image: 0 and n / 2."""
function unpaired(x::Traced, n)
    k = Traced(x.builder, iota(x.builder, index_dtype(n), shape(x), ndims(x) - 1))
    first = compare(:eq, k, 0)
    iseven(n) ? first | compare(:eq, k, n ÷ 2) : first
end

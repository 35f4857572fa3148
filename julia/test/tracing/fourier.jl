# Fourier transforms of traced arrays, against the sums that define them.

include("../support/tracing.jl")
include("../support/fourier_sums.jl")

using JaxprAD: TracingFailed, fourier

count_of(x, dims) = prod(size(x, d) for d in dims)

rng = seeded("fourier")
z = randn(rng, ComplexF64, 4, 3, 2, 5)
x = real(z)

@testset "complex transforms along $dims" for dims in ((1,), (2,), (4, 1), (3, 2, 1), 1:4)
    @test trace(z -> fourier(:fft, z, dims), z)(z) ≈ by_sums(z, dims)
    @test trace(z -> fourier(:ifft, z, dims), z)(z) ≈ by_sums(z, dims, 1) ./ count_of(z, dims)
    @test trace(x -> fourier(:fft, x, dims), x)(x) ≈ by_sums(x, dims)
end

@testset "real transforms along $dims" for dims in ((1,), (2,), (4, 1), (3, 2, 1), (2, 1, 4, 3))
    half = selectdim(by_sums(x, dims), dims[1], 1:size(x, dims[1])÷2+1)
    @test trace(x -> fourier(:rfft, x, dims), x)(x) ≈ half
    n = size(x, dims[1])
    back(y) = fourier(:irfft, y, dims, n)
    @test trace(back, collect(half))(collect(half)) ≈ x
end

@testset "derivatives" begin
    y, v = x[:, :, 1, 1], randn(rng, 4, 3)
    power(y) = sum(abs2, fourier(:rfft, y, (1, 2)) .* [1 2 3])
    plain(y) = [sum(abs2, by_sums(y, (1, 2))[1:3, :] .* [1 2 3])]
    @test sum(gradient(power, y) .* v) ≈ only(quotient(plain, y, v)) rtol = 1e-7
    @test sum(hvp(power, y, v) .* v) ≈ 2 * plain(v)[1]
    filtered(y) = fourier(:irfft, fourier(:rfft, y, (2,)) .* [1.0 2.0im], (2,), 3)
    # Linear in y: its own derivative, whose transpose pairs.
    w, pullback = randn(rng, 4, 3), vjp(filtered, y)[2]
    @test jvp(filtered, (y,), (v,))[2] ≈ trace(filtered, v)(v)
    @test sum(pullback(w)[1] .* v) ≈ sum(w .* trace(filtered, v)(v))
end

@testset "what does not fit" begin
    for dims in ((1, 1), (3,), (0,), ())
        @test occursin("no distinct dimensions", message_of(TracingFailed, () ->
            trace(y -> fourier(:fft, y, dims), ones(2, 3))))
    end
    @test occursin("length 4 has 3 elements", message_of(TracingFailed, () ->
        trace(y -> fourier(:irfft, y, (1,), 4), ones(2, 3))))
end

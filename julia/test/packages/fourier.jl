# Fourier transforms by the names of AbstractFFTs, where that is installed, against the sums that
# define them.

const INSTALLED = VERSION >= v"1.9" && Base.find_package("AbstractFFTs") !== nothing

if INSTALLED
    using AbstractFFTs
    using JaxprAD: TracedConversion, traced
    using LinearAlgebra: ldiv!, mul!

    include("../support/fourier_sums.jl")

    same(f, x, expected) = trace(f, x)(x) ≈ expected

    rng = seeded("fourier of packages")
    z = randn(rng, ComplexF64, 4, 3)
    x = real(z)

    @testset "functions" begin
        for (dims, n) in ((1, 4), (2, 3), ((2, 1), 12), (1:2, 12))
            @test same(z -> fft(z, dims), z, by_sums(z, dims))
            @test same(x -> fft(x, dims), x, by_sums(x, dims))
            @test same(z -> bfft(z, dims), z, by_sums(z, dims, 1))
            @test same(z -> ifft(z, dims), z, by_sums(z, dims, 1) ./ n)
            half = collect(selectdim(by_sums(x, dims), dims[1], 1:size(x, dims[1])÷2+1))
            @test same(x -> rfft(x, dims), x, half)
            m = size(x, dims[1])
            @test same(y -> irfft(y, m, dims), half, x)
            @test same(y -> brfft(y, m, dims), half, n .* x)
        end
        @test same(fft, z, by_sums(z, (1, 2)))
        @test same(x -> fftshift(rfft(x)), x, fftshift(by_sums(x, (1, 2))[1:3, :]))
        @test same(z -> (w = copy(z); fft!(w, 1); w), z, by_sums(z, 1))
        @test same(x -> fft(view(x, 2:4, :), 1), x, by_sums(x[2:4, :], 1))
        @test same(x -> fft(round.(Int, x), 1), x, by_sums(round.(x), 1))
    end

    @testset "plans" begin
        @test same(z -> plan_fft(z, 1) * z, z, by_sums(z, 1))
        @test same(z -> plan_ifft(z, 1) * z, z, by_sums(z, 1, 1) ./ 4)
        @test same(z -> (0.5 * plan_fft(z, 1)) * z, z, 0.5 .* by_sums(z, 1))
        @test same(z -> mul!(similar(z), plan_bfft(z), z), z, by_sums(z, (1, 2), 1))
        @test same(z -> ldiv!(similar(z), plan_bfft(z), 2z), z, 2 .* by_sums(z, (1, 2)) ./ 12)
        for plan in (plan_fft, plan_ifft, plan_bfft, plan_rfft)
            @test same(x -> real(plan(x, (2, 1)) \ (plan(x, (2, 1)) * x)), x, x)
        end
        y = by_sums(x, 1)[1:3, :]
        @test same(y -> (p = plan_irfft(y, 4, 1); p \ (p * y)), y, y)
        @test same(y -> (p = plan_brfft(y, 4, 1); p \ (p * y)), y, y)
        @test same(z -> (w = copy(z); plan_fft!(w) * w; w), z, by_sums(z, (1, 2)))
    end

    @testset "derivatives" begin
        power(x) = sum(abs2, rfft(x))
        @test gradient(power, x[:, 1]) ≈ gradient(x -> sum(abs2, by_sums(x, 1)[1:3]), x[:, 1])
        @test jit(x -> gradient(power, x))(x[:, 1]) ≈ gradient(power, x[:, 1])
    end

    @testset "plans from outside" begin
        struct Foreign <: AbstractFFTs.Plan{ComplexF64} end
        @test_throws TracedConversion trace(z -> Foreign() * z, z)
        @test_throws JaxprAD.TracingFailed trace(z -> plan_fft(z[1:2, :]) * z, z)
    end
else
    @info "AbstractFFTs is not installed, or no extension can be: its functions are not tested"
end

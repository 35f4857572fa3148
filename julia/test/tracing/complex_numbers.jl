# Functions of traced complex numbers: values against Julia's, derivatives of holomorphic functions
# against central differences along both axes, others by the real functions of their parts.

include("../support/tracing.jl")

using JaxprAD: TracedComplex

const HOLOMORPHIC = [-, inv, exp, log, sqrt, sin, cos, tan, sinh, cosh, tanh, +, complex, Complex,
    ComplexF64, float, z -> z^2, z -> z^-3, z -> z^2.5, z -> z^(1 + 2im), z -> 2^z,
    z -> z + im, z -> im - z, z -> 2im * z, z -> z / 2im, z -> im / z, z -> 1 / z, z -> 3z - 1,
    z -> z * (1 + z)^2 / (2 - z), z -> muladd(z, z, 1), z -> transpose(z), z -> prod((z, z, 2)),
    z -> real(z) + im * imag(z), z -> Complex(real(z), imag(z)), z -> complex(reim(z)...),
    z -> abs(z) * cis(angle(z)), z -> select(real(z) > 0, z, z^2)]
const OF_PARTS = [conj, real, imag, abs, abs2, angle, sign, z -> z * conj(z), z -> z', isreal,
    isnan, isinf, isfinite, z -> z == z, z -> z == 0, z -> real(z) == z]
const POINTS = (0.4 + 0.7im, -0.6 + 0.3im, 0.2 - 1.1im)

@testset "values" begin
    for f in (HOLOMORPHIC..., OF_PARTS...), z in POINTS
        @test (f; trace(f, z)(z) ≈ f(z))
        @test (f; typeof(trace(f, z)(z)) === typeof(f(z)))
    end
end

@testset "derivatives of holomorphic functions" begin
    h = 1e-5
    for f in HOLOMORPHIC, z in POINTS
        for direction in (1.0 + 0im, 0.6 - 0.8im)
            central = (f(z + h * direction) - f(z - h * direction)) / 2h
            @test (f; isapprox(jvp(f, (z,), (direction,))[2], central; rtol = 1e-7))
        end
        # The transpose is without conjugation, as JAX's: by the derivative itself.
        derivative = jvp(f, (z,), (one(z),))[2]
        @test (f; vjp(f, z)[2](1.0 + 2im)[1] ≈ derivative * (1 + 2im))
    end
end

@testset "complex numbers of traced reals" begin
    x, y = 0.3, 0.7
    for f in ((x, y) -> x + im * y, (x, y) -> x - y * im, (x, y) -> Complex(x, y)^2,
        (x, y) -> complex(x, 2) * y, (x, y) -> complex(1.5, y) / x, (x, y) -> ComplexF64(x, y),
        (x, y) -> ComplexF32(x, y), (x, y) -> exp(im * x) * cis(y), (x, y) -> (1 + im) / (x + 2im),
        (x, y) -> (2 - im)^x, (x, y) -> x^(y * im + 2), (x, y) -> im - x, (x, y) -> complex(x),
        (x, y) -> im / (x - im), (x, y) -> ComplexF64(x > 0), (x, y) -> x == im, (x, y) -> 2im != y)
        ours = trace(f, x, y)(x, y)
        @test (f; ours ≈ f(x, y) && typeof(ours) === typeof(f(x, y)))
    end
    polar(r) = abs2(r[1] * exp(im * r[2]) + r[2] * im)
    parts(r) = (r[1] * cos(r[2]))^2 + (r[1] * sin(r[2]) + r[2])^2
    @test gradient(polar, [x, y]) ≈ gradient(parts, [x, y])
    @test hessian(polar, [x, y]) ≈ hessian(parts, [x, y])
end

@testset "arrays" begin
    rng = seeded("complex arrays")
    z, x, a = randn(rng, ComplexF64, 4), randn(rng, 4), randn(rng, ComplexF64, 4, 4)
    for f in (z -> z .+ im .* x, z -> complex.(x, real.(z)), z -> z' * z, z -> transpose(z) * z,
        z -> dot(z, a * z), z -> a' * z, z -> a \ z, z -> sum(abs2, z), norm, prod, cumsum, reverse,
        z -> [complex(real(z[1]), 1), z[2] * im], z -> ComplexF64.(real.(z) .> 0), real, conj,
        z -> (w = similar(z); w .= im .* z; w[1] = 1; w), z -> z .^ 2.5 .+ im,
        z -> exp.(im .* x) .* z)
        @test (f; trace(f, z)(z) ≈ f(z))
    end
    @test jacobian(z -> a * z, z) ≈ a
    @test jacobian(z -> [sum(z .^ 2)], z) ≈ reshape(2z, 1, :)
    @test eltype(trace(z -> ComplexF32.(z), z)(z)) === ComplexF32
    for f in (complex, n -> complex.(n, n .> 1), n -> complex.(n, 2.5), n -> n .* im)
        @test (f; trace(f, [1, 2])([1, 2]) == f([1, 2]))
    end
end

@testset "what is not known does not become a number" begin
    @test_throws JaxprAD.TracedConversion trace(z -> convert(ComplexF64, z), 1.0im)
    @test convert(ComplexF64, TracedComplex{ComplexF64}(2im)) === 2.0im
end

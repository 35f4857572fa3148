# Functions of matrices, against LinearAlgebra's and difference quotients.

include("../support/tracing.jl")

const A = randn(seeded("A"), 4, 4)
const T = randn(seeded("T"), 5, 3)
const Y = randn(seeded("Y"), 4, 4)
positive(M) = Symmetric(M * M' + I)
closer(f, x) = agrees(f, x; tolerance = 1e-6)

@testset "exp of norm $size" for size in (1e-3, 1.0, 10.0, 100.0)
    a = A .* (size / opnorm(A, 1))
    @test closer(M -> exp(M) ./ exp(size), a)
    @test trace(exp, a)(a) ≈ exp(a)
end
@testset "exp: what is not finite, of single precision, of complex numbers" begin
    @test all(isnan, trace(exp, A)(fill(NaN, 4, 4)))
    @test trace(exp, Float32.(A))(Float32.(A)) ≈ exp(Float32.(A))
    @test trace(a -> exp(im .* a), A)(A) ≈ exp(im .* A)
    @test second_agrees(M -> sum(Y .* exp(M)), A ./ 3; tolerance = 1e-5)
end

@testset "powers: $n" for n in (-2, -1, 0, 1, 2, 5, 2.0, -1.0)
    @test closer(M -> M^n, A)
    @test closer(M -> positive(M)^n, A)
end

@testset "whole powers of integers are integers" begin
    M = [2 1; 3 -1]
    for n in (0, 1, 2, 5)
        @test trace(M -> M^n, M)(M) == M^n && eltype(trace(M -> M^n, M)(M)) === Int
    end
    @test trace(M -> M^-1, M)(M) ≈ inv(M)
end

const OF_SYMMETRIC =
    (exp, log, sqrt, sin, cos, sinh, cosh, M -> M^0.3, M -> M^-1.5, M -> (2M)^(1 // 2))
@testset "of symmetric matrices: $k" for (k, f) in enumerate(OF_SYMMETRIC)
    @test closer(M -> Matrix(f(positive(M))), A ./ 2)
    @test second_agrees(M -> sum(Y .* f(positive(M))), A ./ 2; tolerance = 1e-4)
end

# At equal eigenvalues the derivative is f′, and near ones a quotient would divide rounding errors.
@testset "eigenvalues that differ by $gap: $k" for gap in (0.0, 1e-14, 1e-9, 1e-5, 1e-2),
    (k, (f, slope)) in enumerate(((exp, exp), (log, inv), (sqrt, x -> 0.5 / sqrt(x)),
        (M -> M^-0.5, x -> -0.5x^-1.5), (cos, x -> -sin(x))))

    direction = [0.3 -0.7; -0.7 1.1]
    _, ẏ = jvp(M -> Matrix(f(Symmetric(M))), ([2.0 0; 0 2+gap],), (direction,))
    mean_slope = sum(slope(2 + gap * t) for t in 0.0005:0.001:1) / 1000
    @test ẏ ≈ [slope(2.0)*0.3 mean_slope*-0.7; mean_slope*-0.7 slope(2 + gap)*1.1] rtol = 1e-9
end

@testset "pseudoinverses" begin
    for x in (T, permutedims(T), A)
        @test closer(pinv, x)
    end
    flat = T[:, [1, 2, 1]]              # of rank 2, with one direction that keeps it
    @test trace(pinv, flat)(flat) ≈ pinv(flat)
    kept = randn(seeded("kept"), 5, 2)[:, [1, 2, 1]]
    _, ẏ = jvp(pinv, (flat,), (kept,))
    @test ẏ ≈ (pinv(flat + 1e-6kept) - pinv(flat - 1e-6kept)) ./ 2e-6 rtol = 1e-6
end

@testset "what is known for symmetric matrices alone: $k" for (k, f) in enumerate(
    (log, sqrt, sin, M -> M^0.5, eigen, eigvals))
    @test occursin("Symmetric", message_of(JaxprAD.TracingFailed, () -> trace(f, A)))
end

using LinearAlgebra: LinearAlgebra, I

r = seeded("qr")
function qr(T, m, n, full = false)
    k = full ? m : min(m, n)
    "(%0: $T[$m,$n]) { %1: $T[$m,$k], %2: $T[$k,$n] = qr %0 {full_matrices=$full} return %1 %2 }"
end
# LAPACK's reflections determine the signs.
thin(x) = (f = LinearAlgebra.qr(permutedims(x)); (permutedims(Matrix(f.Q)), permutedims(f.R)))

check(qr("f64", 3, 3), randn(r, 3, 3); reference = thin, name = "square")
check(qr("f64", 4, 2), randn(r, 2, 4); reference = thin, name = "tall")
check(qr("f64", 2, 4), randn(r, 4, 2); reference = thin, name = "wide")
check(qr("f64", 2, 3, true), randn(r, 3, 2); reference = thin, name = "wide, full")
check(qr("c128", 3, 2), randn(r, ComplexF64, 2, 3); reference = thin, name = "complex", second = false)
check_value(qr("f64", 2, 0, true), x -> (rowmajor([1.0 0; 0 1]), zeros(0, 2)), zeros(0, 2))
@testset "the full Q of a tall matrix" begin
    p = program(qr("f64", 3, 2, true))
    q, R = map(permutedims, run(p, Any[randn(r, 2, 3)]))
    @test q' * q ≈ I && R[3, :] == [0, 0]
    @test_throws JaxprAD.UnsupportedPrimitive jvp(p, [true])
end
@test refuses("(%0: f64[3]) { %1: f64[3], %2: f64[3] = qr %0 {full_matrices=true} return %1 %2 }")

using LinearAlgebra: LinearAlgebra, I

r = seeded("qr")
function qr(T, m, n, full = false; pivoting = false)
    k = full ? m : min(m, n)
    "(%0: $T[$m,$n]) { %1: $T[$m,$k], %2: $T[$k,$n]$(pivoting ? ", %3: i32[$n]" : "") = qr
      %0 {pivoting=$pivoting, full_matrices=$full} return %1 %2 $(pivoting ? "%3" : "") }"
end
# LAPACK's reflections determine the signs.
thin(x) = (f = LinearAlgebra.qr(permutedims(x)); (permutedims(Matrix(f.Q)), permutedims(f.R)))

check(qr("f64", 3, 3), randn(r, 3, 3); reference = thin, name = "square")
check(qr("f64", 4, 2), randn(r, 2, 4); reference = thin, name = "tall")
check(qr("f64", 2, 4), randn(r, 4, 2); reference = thin, name = "wide")
check(qr("f64", 2, 3, true), randn(r, 3, 2); reference = thin, name = "wide, full")
check(qr("c128", 3, 2), randn(r, ComplexF64, 2, 3); reference = thin, name = "complex",
    second = false)
check_value(qr("f64", 2, 0, true), x -> (rowmajor([1.0 0; 0 1]), zeros(0, 2)), zeros(0, 2))
whole(x) =
    (
        f = LinearAlgebra.qr(permutedims(x));
        (permutedims(f.Q * Matrix{eltype(x)}(I, size(x, 2), size(x, 2))),
            permutedims(vcat(f.R, zeros(eltype(x), size(x, 2) - size(x, 1), size(x, 1)))))
    )
check(qr("f64", 4, 2, true), randn(r, 2, 4); reference = whole, name = "tall, full")
check(qr("c128", 3, 2, true), randn(r, ComplexF64, 2, 3); reference = whole,
    name = "complex, tall, full", second = false)
@testset "the full Q of a tall matrix" begin
    q, R = map(permutedims, run(program(qr("f64", 3, 2, true)), Any[randn(r, 2, 3)]))
    @test q' * q ≈ I && R[3, :] == [0, 0]
end
pivoted(x) =
    (f = LinearAlgebra.qr(permutedims(x), pivots());
    (permutedims(Matrix(f.Q)), permutedims(f.R), Int32.(f.p .- 1)))
pivots() = VERSION < v"1.7" ? Val(true) : LinearAlgebra.ColumnNorm()
for (name, m, n) in (("square", 3, 3), ("tall", 4, 2), ("wide", 2, 4))
    check(qr("f64", m, n; pivoting = true), randn(r, n, m); reference = pivoted,
        name = "$name, pivoted")
end
check_value(qr("f64", 0, 2, false; pivoting = true), x -> (zeros(0, 0), zeros(2, 0), Int32[0, 0]),
    zeros(2, 0))
@test refuses("(%0: f64[3]) { %1: f64[3],
  %2: f64[3] = qr %0 {pivoting=false, full_matrices=true} return %1 %2 }")

using LinearAlgebra: Tridiagonal

r = seeded("tridiagonal_solve")
text(T, batch = "") = "(%0: $T[$(batch)4], %1: $T[$(batch)4], %2: $T[$(batch)4],
  %3: $T[$(batch)4,2]) { %4: $T[$(batch)4,2] = tridiagonal_solve %0 %1 %2 %3 return %4 }"
dense(lower, d, upper, b) =
    (permutedims(Matrix(Tridiagonal(lower[2:end], d, upper[1:end-1])) \ permutedims(b)),)

for T in (Float64, ComplexF64)
    name = T === Float64 ? "f64" : "c128"
    check(text(name), randn(r, T, 4), randn(r, T, 4) .+ 4, randn(r, T, 4), randn(r, T, 2, 4);
        reference = dense, second = T === Float64, name = name)
end
check(text("f64", "2,"), randn(r, 4, 2), randn(r, 4, 2) .+ 4, randn(r, 4, 2), randn(r, 2, 4, 2);
    second = false, name = "batch",
    reference = (l, d, u, b) ->
        (cat((dense(l[:, k], d[:, k], u[:, k], b[:, :, k])[1] for k in 1:2)...; dims = 3),))
check("(%0: f64[3,2]) { %1: f64[3] = constant {value=[0.0, 1.0, 2.0]}
  %2: f64[3] = constant {value=[5.0, 4.0, 6.0]}
  %3: f64[3,2] = tridiagonal_solve %1 %2 %1 %0 return %3 }",
    randn(r, 2, 3); name = "linear in the right-hand sides")
check_value("(%0: f64[1]) { %1: f64[1,1] = reshape %0 {shape=[1, 1]}
  %2: f64[1,1] = tridiagonal_solve %0 %0 %0 %1 return %2 }", x -> (ones(1, 1),), [2.0])
@test refuses("(%0: f64[3], %1: f64[2,1]) {
  %2: f64[2,1] = tridiagonal_solve %0 %0 %0 %1 return %2 }")

using LinearAlgebra: Diagonal, I, diag

r = seeded("eig")
n = 3
eig(T, C, left, right, derivatives = true) = """(%0: $T[3,3]) {
  $(join(["%1: $C[3]"; ["%$k: $C[3,3]" for k in 2:1+left+right]], ", ")) = eig %0 {left=$left,
    right=$right, vector_derivatives=$derivatives}
  return $(join(["%$k" for k in 1:1+left+right], " ")) }"""
far_apart(T) = rowmajor(T[1 0 0; 0 3 0; 0 0 -2] .+ T(0.2) .* randn(r, T, 3, 3))
rotating = rowmajor([0.0 -2 0.1; 2 0 0.2; 0.3 0.1 1])       # a complex pair

for (name, T, x) in (("f64", Float64, far_apart(Float64)), ("complex pair", Float64, rotating),
    ("c128", ComplexF64, far_apart(ComplexF64)))
    type = T === Float64 ? "f64" : "c128"
    check(eig(type, "c128", false, false), x; second = false, name = name)
    check(eig(type, "c128", true, true), x; second = false, name = "$name, vectors")
    @testset "$name solves the eigenvalue equations" begin
        w, u, v = run(program(eig(type, "c128", true, true)), Any[x])
        a, u, v = permutedims(x), permutedims(u), permutedims(v)
        @test a * v ≈ v * Diagonal(w)
        @test u' * a ≈ Diagonal(w) * u'
    end
end
@test_throws JaxprAD.UnsupportedPrimitive jvp(program(eig("f64", "c128", false, true, false)),
    [true])
@test refuses("(%0: f64[3,3]) { %1: f64[3] = eig %0 {left=false, right=false,
  vector_derivatives=false} return %1 }")

using LinearAlgebra: LinearAlgebra, svdvals

r = seeded("svd")
real_of(T) = T == "c128" ? "f64" : T
values_of(T, m, n) = "(%0: $T[$m,$n]) { %1: $(real_of(T))[$(min(m, n))] = svd
  %0 {full_matrices=false, compute_uv=false} return %1 }"
# |U|² and |V|² do not depend on phases.
function svd(T, m, n)
    k, R, size = min(m, n), real_of(T), T == "c128" ? "abs" : "copy"
    """(%0: $T[$m,$n]) { %1: $R[$k], %2: $T[$m,$k],
      %3: $T[$k,$n] = svd %0 {full_matrices=false, compute_uv=true}
        %4: $R[$m,$k] = $size %2 %5: $R[$m,$k] = square %4 %6: $R[$k,$n] = $size %3
          %7: $R[$k,$n] = square %6 return %1 %5 %7 }"""
end
decomposed(x) =
    (f = LinearAlgebra.svd(permutedims(x));
    (f.S, permutedims(abs2.(f.U)), permutedims(abs2.(f.Vt))))

# Close singular values make derivatives large.
spread_apart(T, n...) = randn(r, T, n...) ./ 4 .+ [i == j ? i : 0 for i in 1:n[1], j in 1:n[2]]

check(values_of("f64", 3, 2), randn(r, 2, 3); reference = x -> (svdvals(x),))
for (m, n) in ((3, 3), (4, 2), (2, 3))
    check(svd("f64", m, n), spread_apart(Float64, n, m); reference = decomposed, name = "$m × $n")
end
check(svd("c128", 3, 2), spread_apart(ComplexF64, 2, 3); reference = decomposed, name = "complex")
@testset "full matrices" begin
    p = program("(%0: f64[2,3]) { %1: f64[2], %2: f64[2,2],
      %3: f64[3,3] = svd %0 {full_matrices=true, compute_uv=true} return %1 %2 %3 }")
    x = randn(r, 3, 2)
    s, u, vᴴ = run(p, Any[x])
    @test permutedims(u) * [s[1] 0 0; 0 s[2] 0] * permutedims(vᴴ) ≈ permutedims(x)
    @test_throws JaxprAD.UnsupportedPrimitive jvp(p, [true])
end
check_value(values_of("f64", 1, 2), x -> ([NaN],), fill(NaN, 2, 1))
@test refuses("(%0: f64[3]) { %1: f64[3] = svd %0 {full_matrices=false, compute_uv=false} return
  %1 }")

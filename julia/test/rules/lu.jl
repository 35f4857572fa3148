using LinearAlgebra: LinearAlgebra, I, tril, triu

r = seeded("lu")
function lu(T, m, n, batch = "")
    k = min(m, n)
    "(%0: $T[$batch$m,$n]) { %1: $T[$batch$m,$n], %2: i32[$batch$k],
      %3: i32[$batch$m] = lu %0 return %1 %2 %3 }"
end
function reference(x)
    f = LinearAlgebra.lu(permutedims(x); check = false)
    (permutedims(f.factors), Int32.(f.ipiv .- 1), Int32.(f.p .- 1))
end

for (m, n) in ((3, 3), (4, 2), (2, 4), (1, 3))
    check(lu("f64", m, n), randn(r, n, m); reference = reference, second = m == 3,
        name = "$m by $n")
end
check(lu("c128", 3, 3), randn(r, ComplexF64, 3, 3); reference = reference, second = false,
    name = "complex")
check(lu("f32", 3, 3), randn(r, Float32, 3, 3); reference = reference, second = false,
    name = "single")
batch = randn(r, 3, 3, 2)
check(lu("f64", 3, 3, "2,"), batch; name = "batch", second = false,
    reference = x -> ((parts = map(k -> reference(x[:, :, k]), 1:2));
    Tuple(cat(getindex.(parts, j)...; dims = ndims(parts[1][j]) + 1) for j in 1:3)))
check_value(lu("f64", 2, 2), reference, [0.0 0; 0 0])
check_value(lu("f64", 0, 2), x -> (zeros(2, 0), Int32[], Int32[]), zeros(2, 0))
@testset "rows in their order are the product" begin
    x = randn(r, 3, 5)
    factors, _, permutation = run(program(lu("f64", 5, 3)), Any[x])
    a = permutedims(factors)
    @test permutedims(x)[permutation.+1, :] ≈ (tril(a, -1) + Matrix(I, 5, 3)) * triu(a)[1:3, :]
end
pivots = "(%0: i32[2,2]) { %1: i32[2,4] = lu_pivots_to_permutation %0 {size=4} return %1 }"
check_value(pivots, x -> (rowmajor(Int32[2 1 0 3; 0 3 2 1]),), rowmajor(Int32[2 1; 0 3]))
# What JAX 0.10 gives for pivots that are none.
odd = "(%0: i32[4,4]) { %1: i32[4,4] = lu_pivots_to_permutation %0 {size=4} return %1 }"
check_value(odd, x -> (rowmajor(Int32[1 3 1 3; 3 0 2 1; 3 3 3 1; 0 3 0 1]),),
    rowmajor(Int32[1 5000000 -7 1000000000; -1 -2 1 1; 4 1 -5 1; 3 -4 5 0]))
@test refuses("(%0: f64[3]) { %1: f64[3], %2: i32[3], %3: i32[3] = lu %0 return %1 }")
@test refuses("(%0: i32[3]) { %1: i32[2] = lu_pivots_to_permutation %0 {size=2} return %1 }")

# Small ones without LAPACK, larger ones with it; ties and zeros among the pivots.
@testset "$T, $m by $n" for T in (Float32, Float64),
    (m, n) in ((1, 1), (2, 2), (4, 4), (7, 3), (3, 7), (24, 24), (5, 24), (25, 25))

    p = program(lu(T === Float32 ? "f32" : "f64", m, n, "3,"))
    for values in (() -> randn(r, T, n, m, 3), () -> T.(rand(r, -1:1, n, m, 3)))
        x = values()
        y = JaxprAD.run(native_kernel(p), p, Any[x])
        for k in 1:3
            factors, pivots, permutation = permutedims(y[1][:, :, k]), y[2][:, k], y[3][:, k]
            lower, upper = tril(factors, -1) + Matrix(I, m, n), triu(factors)
            product = Float64.(lower[:, 1:min(m, n)]) * upper[1:min(m, n), :]
            if all(isfinite, factors)
                @test product ≈ permutedims(x[:, :, k])[permutation.+1, :] atol = 50eps(T)
                @test all(abs.(tril(factors, -1)) .<= 1)
            end
            @test sort(permutation) == 0:m-1
        end
    end
    @test heap_free(p)
end

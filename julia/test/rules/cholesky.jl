using LinearAlgebra: LinearAlgebra, Hermitian, I

r = seeded("cholesky")

# The derivative is that of Hermitian A = X Xᴴ + I; finite differences must stay on such.
gram(type, n, X) = """(%0: $type) { %1: $type = $(startswith(type, "c") ? "conj" : "copy") %0
    %2: $type = dot_general %0 %1 {lhs_contract=[$(n-1)], rhs_contract=[$(n-1)],
      lhs_batch=$(n == 3 ? "[0]" : "[]"), rhs_batch=$(n == 3 ? "[0]" : "[]"),
    dtype=$(split(type, "[")[1]), precision=none} %3: $type = constant {value=$X}
      %4: $type = add %2 %3 %5: $type = cholesky %4 return %5 }"""
unit_matrix(n) = string(vec(Matrix{Float64}(I, n, n)))
factor(x) = (a = permutedims(x); permutedims(LinearAlgebra.cholesky(Hermitian(a * a' + I)).L))

check(gram("f64[3,3]", 2, unit_matrix(3)), randn(r, 3, 3); reference = x -> (factor(x),),
    name = "real")
check(gram("c128[2,2]", 2, [1.0, 0, 0, 0, 0, 0, 1, 0]), randn(r, ComplexF64, 2, 2);
    reference = x -> (factor(x),), name = "complex")
check(gram("f64[2,2,2]", 3, repeat([1.0, 0, 0, 1], 2)), randn(r, 2, 2, 2);
    reference = x -> (cat(factor(x[:, :, 1]), factor(x[:, :, 2]); dims = 3),), name = "batch")
# Of any operand the lower triangle is read and the real part of the diagonal, whatever else there
# is: so along any direction.
bare(type) = "(%0: $type) { %1: $type = cholesky %0 return %1 }"
lower_factor(x) = permutedims(LinearAlgebra.cholesky(Hermitian(permutedims(x), :L)).L)
dominated(T, n) = randn(r, T, n, n) .+ 4 .* Matrix{T}(I, n, n)
for (type, T) in ("f64[4,4]" => Float64, "c128[4,4]" => ComplexF64)
    check(bare(type), dominated(T, 4); reference = x -> (lower_factor(x),),
        name = "$type, not symmetric")
end
check(bare("c128[2,3,3]"), cat(dominated(ComplexF64, 3), dominated(ComplexF64, 3); dims = 3);
    reference = x -> (cat(lower_factor(x[:, :, 1]), lower_factor(x[:, :, 2]); dims = 3),),
    name = "batch, not symmetric")
@testset "what is not read, be it NaN, has no part in derivatives" begin
    v = vjp(program(bare("f64[2,2]")))
    @test run(v, [rowmajor([4.0 NaN; 2 2]), ones(2, 2)]) ≈ [rowmajor([0.25 0; 0 0.5])]
end

check_value("(%0: f64[2,2]) { %1: f64[2,2] = cholesky %0 return %1 }",
    x -> (rowmajor([2.0 0; 1 1]),), rowmajor([4.0 99; 2 2]))
check_value("(%0: f64[2,2]) { %1: f64[2,2] = cholesky %0 return %1 }",
    x -> (rowmajor([NaN 0; NaN NaN]),), rowmajor([1.0 2; 2 1]))
@testset "NaN in what is read makes the factor NaN, $n x $n $T" for (T, type) in (Float32 => "f32",
        Float64 => "f64", ComplexF32 => "c64"), n in (3, 40)

    p = program(bare("$type[$n,$n]"))
    @test heap_free(p)
    for (i, j) in ((1, 1), (2, 1), (n, n), (n, 1))
        x = Matrix{T}(I, n, n)
        x[j, i] = NaN       # row-major
        for y in (run(p, Any[x])[1], JaxprAD.run(JaxprAD.compile(p), p, Any[x])[1])
            @test all(isnan, [y[c, k] for k in 1:n for c in 1:k])
            @test all(iszero, [y[c, k] for k in 1:n for c in k+1:n])
        end
    end
    x = Matrix{T}(I, n, n)
    x[1:2, 1:2] = [NaN 0.5; 0.5 1]
    @test all(isnan, JaxprAD.run(JaxprAD.compile(p), p, Any[x])[1][1, :])
end

check_value("(%0: f64[0,0]) { %1: f64[0,0] = cholesky %0 return %1 }", x -> (x,), zeros(0, 0))
@test refuses("(%0: f64[2,3]) { %1: f64[2,3] = cholesky %0 return %1 }")
@test refuses("(%0: i32[2,2]) { %1: i32[2,2] = cholesky %0 return %1 }")

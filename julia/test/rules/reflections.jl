using LinearAlgebra: LinearAlgebra, I, tril, triu

r = seeded("reflections")
schur(T) = "(%0: $T[3,3]) { %1: $T[3,3], %2: $T[3,3] = schur %0 {vectors=true} return %1 %2 }"
hessenberg(T) = "(%0: $T[4,4]) { %1: $T[4,4], %2: $T[3] = hessenberg %0 return %1 %2 }"
product(T) = "(%0: $T[4,3], %1: $T[2]) { %2: $T[4,3] = householder_product %0 %1 return %2 }"

for (name, T) in (("f64", Float64), ("c128", ComplexF64))
    @testset "$name" begin
        x = randn(r, T, 3, 3)
        t, z = map(permutedims, run(program(schur(name)), Any[x]))
        @test z * t * z' ≈ permutedims(x)
        @test z' * z ≈ I
        T <: Complex && @test t ≈ triu(t)
        @test run(program("(%0: $name[3,3]) { %1: $name[3,3] = schur %0 {vectors=false} return %1 }"), Any[x])[1] ≈ permutedims(t)

        a = randn(r, T, 4, 4)
        h, scales = run(program(hessenberg(name)), Any[a])
        f = LinearAlgebra.hessenberg(permutedims(a))
        @test triu(permutedims(h), -1) ≈ Matrix(f.H)
        # The reflections are those of the lower right block: their product, with a leading 1, is Q.
        q = run(program("(%0: $name[3,3], %1: $name[3]) { %2: $name[3,3] = householder_product %0 %1 return %2 }"), Any[h[1:3, 2:4], scales])[1]
        @test permutedims(q) ≈ Matrix(f.Q)[2:4, 2:4]

        columns, scales = randn(r, T, 3, 4), randn(r, T, 2)
        expected = Matrix{T}(I, 4, 4)
        for k in 1:2
            v = vcat(zeros(T, k - 1), one(T), permutedims(columns)[k+1:4, k])
            expected *= I - scales[k] * v * v'
        end
        @test permutedims(run(program(product(name)), Any[columns, scales])[1]) ≈ expected[:, 1:3]
    end
end
@test_throws JaxprAD.UnsupportedPrimitive jvp(program(schur("f64")), [true])
@test refuses("(%0: f64[2,3], %1: f64[2]) { %2: f64[2,3] = householder_product %0 %1 return %2 }")
@test refuses("(%0: f64[2,3]) { %1: f64[2,3] = schur %0 {vectors=false} return %1 }")

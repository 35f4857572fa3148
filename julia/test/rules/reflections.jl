using LinearAlgebra: LinearAlgebra, I, tril, triu

r = seeded("reflections")
schur(T) = "(%0: $T[3,3]) { %1: $T[3,3], %2: $T[3,3] = schur %0 {vectors=true} return %1 %2 }"
hessenberg(T) = "(%0: $T[4,4]) { %1: $T[4,4], %2: $T[3] = hessenberg %0 return %1 %2 }"
tridiagonal(T, R, lower) = "(%0: $T[3,3]) { %1: $T[3,3], %2: $R[3], %3: $R[2],
  %4: $T[2] = tridiagonal %0 {lower=$lower} return %1 %2 %3 %4 }"
geqrf(T) = "(%0: $T[4,3]) { %1: $T[4,3], %2: $T[3] = geqrf %0 return %1 %2 }"
geqp3(T) = "(%0: $T[4,3], %1: i32[3]) { %2: $T[4,3], %3: i32[3],
  %4: $T[3] = geqp3 %0 %1 return %2 %3 %4 }"
function ormqr(T, left, transpose)
    c = left ? "4,2" : "2,4"
    "(%0: $T[4,3], %1: $T[3], %2: $T[$c]) {
      %3: $T[$c] = ormqr %0 %1 %2 {left=$left, transpose=$transpose} return %3 }"
end
product(T) = "(%0: $T[4,3], %1: $T[2]) { %2: $T[4,3] = householder_product %0 %1 return %2 }"

for (name, T) in (("f64", Float64), ("c128", ComplexF64))
    @testset "$name" begin
        x = randn(r, T, 3, 3)
        t, z = map(permutedims, run(program(schur(name)), Any[x]))
        @test z * t * z' ≈ permutedims(x)
        @test z' * z ≈ I
        T <: Complex && @test t ≈ triu(t)
        @test run(program("(%0: $name[3,3]) {
          %1: $name[3,3] = schur %0 {vectors=false} return %1 }"), Any[x])[1] ≈ permutedims(t)

        a = randn(r, T, 4, 4)
        h, scales = run(program(hessenberg(name)), Any[a])
        f = LinearAlgebra.hessenberg(permutedims(a))
        @test triu(permutedims(h), -1) ≈ Matrix(f.H)
        # The reflections are those of the lower right block: their product, with a leading 1, is Q.
        q = run(program("(%0: $name[3,3], %1: $name[3]) {
          %2: $name[3,3] = householder_product %0 %1 return %2 }"), Any[h[1:3, 2:4], scales])[1]
        @test permutedims(q) ≈ Matrix(f.Q)[2:4, 2:4]

        x = randn(r, T, 3, 4)
        reflections, scales = run(program(geqrf(name)), Any[x])
        Q, R = let f = LinearAlgebra.qr(permutedims(x))
            f.Q * Matrix{T}(I, 4, 4), f.R
        end
        @test triu(permutedims(reflections))[1:3, :] ≈ R
        for left in (true, false), transpose in (true, false)
            c = left ? randn(r, T, 2, 4) : randn(r, T, 4, 2)
            q = transpose ? Q' : Q
            @test permutedims(
                run(program(ormqr(name, left, transpose)),
                    Any[reflections, scales, c])[1]
            ) ≈ (left ? q * permutedims(c) : permutedims(c) * q)
        end
        for first in (Int32[0, 0, 0], Int32[0, 1, 0])
            pivoted, order, scales = run(program(geqp3(name)), Any[x, first])
            again, same = run(program(geqrf(name)), Any[x[order, :]])
            @test pivoted ≈ again && scales ≈ same
            norms = [sum(abs2, x[j, :]) for j in 1:3]
            @test order[1] == (any(first .> 0) ? 2 : argmax(norms))
        end
        x = randn(r, T, 3, 3)
        x = x + permutedims(conj(x))
        for lower in (true, false)
            y, d, e, scales = run(program(tridiagonal(name, "f64", lower)), Any[x])
            t = LinearAlgebra.SymTridiagonal(d, e)
            @test LinearAlgebra.eigvals(t) ≈ LinearAlgebra.eigvals(
                LinearAlgebra.Hermitian(permutedims(x)))
            @test d ≈ real(LinearAlgebra.diag(y)) &&
                  e ≈ real(LinearAlgebra.diag(permutedims(y), lower ? -1 : 1))
            Q = LinearAlgebra.LAPACK.orgtr!(lower ? 'L' : 'U', permutedims(y), scales)
            @test Q * t * Q' ≈ permutedims(x)
        end

        columns, scales = randn(r, T, 3, 4), randn(r, T, 2)
        expected = Matrix{T}(I, 4, 4)
        for k in 1:2
            v = vcat(zeros(T, k - 1), one(T), permutedims(columns)[k+1:4, k])
            expected *= I - scales[k] * v * v'
        end
        @test permutedims(run(program(product(name)), Any[columns, scales])[1]) ≈ expected[:, 1:3]
    end
end
for underived in (schur("f64"), geqrf("f64"), geqp3("f64"), tridiagonal("f64", "f64", true),
    ormqr("f64", true, true))
    p = program(underived)
    @test_throws JaxprAD.UnsupportedPrimitive jvp(p, isinexact.(map(dtype, p.inputs)))
end
@test refuses("(%0: f64[2,4,3], %1: f64[2,3], %2: f64[2,3,4]) {
  %3: f64[2,3,4] = ormqr %0 %1 %2 {left=true, transpose=false} return %3 }")
@test refuses("(%0: f64[4,3], %1: i64[3]) { %2: f64[4,3], %3: i64[3],
  %4: f64[3] = geqp3 %0 %1 return %2 %3 %4 }")
@test refuses("(%0: f64[0,0]) { %1: f64[0,0], %2: f64[0], %3: f64[0],
  %4: f64[0] = tridiagonal %0 {lower=true} return %1 %2 %3 %4 }")
@test refuses("(%0: f64[2,3], %1: f64[2]) { %2: f64[2,3] = householder_product %0 %1 return %2 }")
@test refuses("(%0: f64[2,3]) { %1: f64[2,3] = schur %0 {vectors=false} return %1 }")

using LinearAlgebra: Diagonal, I, diag, tril, triu

r = seeded("triangular_solve")
solve(type, b, left, lower, trans, conj, unit) = """(%0: $type, %1: $b) {
  %2: $b = triangular_solve %0 %1 {left_side=$left, lower=$lower,
    transpose_a=$trans, conjugate_a=$conj, unit_diagonal=$unit} return %2 }"""

"The solution by a general solver, from the Program's matrices."
function solved(a, b; left, lower, trans, conj, unit)
    a, b = permutedims(a), permutedims(b)
    a = lower ? tril(a) : triu(a)
    unit && (a = a - Diagonal(diag(a)) + I)
    trans && (a = permutedims(a))
    conj && (a = Base.conj(a))
    (permutedims(left ? a \ b : b / a),)
end
wellconditioned(T, n...) = normal(r, T, collect(reverse(n))) .+ 3 .* Matrix{T}(I, n[1], n[2])

for left in (true, false), lower in (true, false), trans in (true, false), unit in (true, false)
    b = left ? randn(r, 2, 3) : randn(r, 3, 2)
    check(solve("f64[3,3]", left ? "f64[3,2]" : "f64[2,3]", left, lower, trans, false, unit),
        wellconditioned(Float64, 3, 3), b;
        reference = (a, b) ->
            solved(a, b; left = left, lower = lower, trans = trans, conj = false,
                unit = unit), second = left == lower,
        name = "left $left, lower $lower, transposed $trans, unit $unit")
end
for conj in (true, false), trans in (true, false)
    check(solve("c128[3,3]", "c128[3,2]", true, true, trans, conj, false),
        wellconditioned(ComplexF64, 3, 3), randn(r, ComplexF64, 2, 3);
        reference = (a, b) ->
            solved(a, b; left = true, lower = true, trans = trans, conj = conj, unit = false),
        name = "complex, conjugate $conj, transposed $trans")
end
check(solve("f64[2,3,3]", "f64[2,3,2]", true, false, false, false, false),
    cat(wellconditioned(Float64, 3, 3), wellconditioned(Float64, 3, 3); dims = 3),
    randn(r, 2, 3, 2);
    reference = (a, b) ->
        (
            cat(
                (
                    solved(a[:, :, k], b[:, :, k]; left = true, lower = false, trans = false,
                        conj = false, unit = false)[1]
                    for k in 1:2
                )...; dims = 3),
        ), name = "batch")
check_value(solve("f64[0,0]", "f64[0,2]", true, true, false, false, false),
    (a, b) -> (zeros(2, 0),), zeros(0, 0), zeros(2, 0))
check_value(solve("f32[0,2,2]", "f32[0,2,1]", true, true, false, false, false),
    (a, b) -> (zeros(Float32, 1, 2, 0),), zeros(Float32, 2, 2, 0), zeros(Float32, 1, 2, 0))
check_value(solve("f64[1,1]", "f64[1,1]", true, true, false, false, false),
    (a, b) -> (fill(Inf, 1, 1),), zeros(1, 1), ones(1, 1))
@test refuses(solve("f64[2,3]", "f64[3,2]", true, true, false, false, false))
@test refuses(solve("f64[3,3]", "f64[2,3]", true, true, false, false, false))
@test refuses(solve("f64[3,3]", "f32[3,2]", true, true, false, false, false))

# By tiles, for each number of rows that is left over and of registers of columns; the other half of
# the matrix is not read.
@testset "$T, $n unknowns, $sides right-hand sides" for T in (Float32, Float64),
    (n, sides) in ((1, 2), (2, 3), (3, 16), (5, 20), (7, 33), (8, 64), (14, 100), (31, 17),
        (33, 47), (100, 100), (40, 4), (401, 16))

    t = T === Float32 ? "f32" : "f64"
    for left in (true, false), lower in (true, false), trans in (true, false), unit in (true, false)
        n > 33 && unit && continue
        b = left ? (n, sides) : (sides, n)
        a = wellconditioned(T, n, n) ./ T(n) .+ Matrix{T}(I, n, n)
        kept = lower ? triu(a) : tril(a)        # of its transpose: arrays are row-major
        a = kept .+ (lower ? tril(fill(T(NaN), n, n), -1) : triu(fill(T(NaN), n, n), 1))
        p = program(solve("$t[2,$n,$n]", "$t[2,$(b[1]),$(b[2])]", left, lower, trans, false, unit))
        x = Any[asarray(cat(a, a; dims = 3)), normal(r, T, [2, b...])]
        y = JaxprAD.run(native_kernel(p), p, x)[1]
        for i in 1:2
            exact = solved(Float64.(kept), Float64.(x[2][:, :, i]); left = left, lower = lower,
                trans = trans, conj = false, unit = unit)[1]
            @test maximum(abs, y[:, :, i] - exact) <= 100 * eps(T) * maximum(abs, exact)
        end
    end
    for left in (true, false)
        b = left ? "$t[$n,$sides]" : "$t[$sides,$n]"
        @test heap_free(program(solve("$t[$n,$n]", b, left, true, false, false, false)))
    end
end

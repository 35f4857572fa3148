# Sums as wholes. Random Programs on numbers of the whole range are in passes/ranges.

using JaxprAD: factor_sums

same_values(p::Program, q::Program, x) = all(isapprox.(run(p, x), run(q, x); rtol = 1e-12))
numbers(p::Program) =
    Any[asarray(randn(Float64, reverse(Int.(v.type.shape))...)) for v in p.inputs]

@testset "terms under one linear map are added first" begin
    p = program("""(%0: f64[3], %1: f64[3], %2: f64[]) { %3: f64[] = reduce_sum %0 {axes=[0]}
      %4: f64[] = reduce_sum %1 {axes=[0]} %5: f64[] = sub %3 %4 return %5 }""")
    q = factor_sums(p)
    @test names_in(JaxprAD.dce(q)) == [:sub, :reduce_sum]
    @test same_values(p, q, numbers(p))
end

@testset "a sum keeps what it reads through a sign that others read too" begin
    # %3 is used once, but by %5, which is read elsewhere.
    for (lines, outputs) in (
        ("%3: f64[] = neg %2 %4: f64[] = add %0 %0 %5: f64[] = neg %3 %6: f64[] = add %2 %0
          %7: f64[] = add %5 %4", "%5 %6 %7"),
        ("%3: f64[] = add %1 %1 %4: f64[] = neg %1 %5: f64[] = neg %3 %6: f64[] = sub %1 %5
          %7: f64[] = add %1 %6", "%5 %4 %7"))
        p = program("(%0: f64[], %1: f64[], %2: f64[]) { $lines return $outputs }")
        @test same_values(p, factor_sums(p), numbers(p))
    end
end

@testset "sums of random terms and signs" begin
    r = seeded("sums of terms")
    for _ in 1:5000
        lines, values = String[], ["%0", "%1", "%2"]
        for k in 3:rand(r, 5:14)
            a, b = rand(r, values), rand(r, values)
            line = rand(r, ("neg $a", "neg $a", "add $a $b", "sub $a $b", "mul 2.5:f64 $a"))
            push!(lines, "%$k: f64[] = $line")
            push!(values, "%$k")
        end
        outputs = join(rand(r, values[4:end], 3), " ")
        p = JaxprAD.dce(program(
            "(%0: f64[], %1: f64[], %2: f64[]) { $(join(lines, " ")) return $outputs }"))
        x = numbers(p)
        good = all(isapprox.(run(p, x), run(factor_sums(p), x); rtol = 1e-9, atol = 1e-9))
        good || println(program_text(p))
        @test good
    end
end

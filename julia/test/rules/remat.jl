remat(barrier) = """(%0: f64[3]) {
  %1: f64[3] = remat %0 {body=(%0: f64[3]) {
    %1: f64[3] = sin %0
    %2: f64[3] = exp %1
    %3: f64[3] = sin %2
    return %3
  }, barrier=$barrier}
  %2: f64[3] = mul %1 %1
  return %2
}"""
for barrier in (false, true)
    check(remat(barrier), [0.1, -0.4, 1.2]; reference = x -> (sin.(exp.(sin.(x))) .^ 2,), name = "remat, barrier=$barrier")
end

@testset "nothing of the body is kept: its operands are the residuals" begin
    l = linearize(program(remat(true)))
    @test all(a -> a isa JaxprAD.Var, l.known.outputs)
    kept = unique(l.known.outputs[2:end])
    @test length(kept) <= 2     # x, and the body's result for the product
    inner = only(e for e in l.linear.equations if name_of(e) === :remat)
    @test count(==(:sin), map(name_of, inner[:body].equations)) >= 1
end
@testset "optimize keeps a body behind its barrier and opens one without" begin
    names(barrier) = map(name_of, optimize(program(remat(barrier))).equations)
    @test :remat in names(true) && !(:remat in names(false))
end

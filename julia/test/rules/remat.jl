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
    check(remat(barrier), [0.1, -0.4, 1.2]; reference = x -> (sin.(exp.(sin.(x))) .^ 2,),
        name = "remat, barrier=$barrier")
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
@testset "a mark is for the checkpoints that it names" begin
    nested(levels...) = program("""(%0: f64[3]) {
      %1: f64[3] = remat %0 {body=(%0: f64[3]) {
        %1: f64[3] = remat %0 {body=(%0: f64[3]) {
          %1: f64[3] = sin %0
          %2: f64[3] = saveable %1 {levels=[$(join(levels, ", "))]}
          %3: f64[3] = exp %2
          return %3
        }, barrier=true}
        return %1
      }, barrier=true}
      return %1
    }""")
    residuals(levels...) =
        (l = linearize(nested(levels...)); setdiff(l.known.outputs[2:end], l.known.inputs))
    @test isempty(residuals(0)) && length(residuals(1)) == length(residuals(0, 1)) == 1
    # Going back, the sine is computed inside of those checkpoints that may not keep it.
    depths(p, d = 0) =
        Int[
            n for e in p.equations
            for n in (
                name_of(e) === :sin ? [d] :
                mapreduce(q -> depths(q, d + 1), vcat, JaxprAD.bodies(e); init = Int[])
            )
        ]
    @test depths(vjp(nested(0))) == [1] &&
          depths(vjp(nested(1))) == depths(vjp(nested(0, 1))) == [0]
    @test_throws JaxprAD.ProgramTypeError typecheck(nested())
    @test_throws JaxprAD.ProgramTypeError typecheck(nested(1, 0))
end
@testset "what is kept inside of a loop is stacked, inside of a branch it is a result" begin
    body = "(%0: f64[3]) { %1: f64[3] = sin %0 %2: f64[3] = saveable %1 {levels=[0]}
      %3: f64[3] = mul %2 %0 %4: f64[3] = cos %3 return %4 }"
    scan = """(%0: f64[3]) {
      %1: f64[3] = remat %0 {body=(%0: f64[3]) {
        %1: f64[3] = scan %0 {length=4, reverse=false, consts=0, carry=1, unroll=1, body=$body}
        return %1
      }, barrier=true}
      return %1
    }"""
    cond = """(%0: i32[], %1: f64[3]) {
      %2: f64[3] = remat %0 %1 {body=(%0: i32[], %1: f64[3]) {
        %2: f64[3] = cond %0 %1 {branches=[$body, (%0: f64[3]) { return %0 }]}
        return %2
      }, barrier=true}
      return %2
    }"""
    kept(text) =
        (l = linearize(program(text));
        [JaxprAD.shape(a) for a in setdiff(l.known.outputs[2:end], l.known.inputs)])
    @test kept(scan) == [[4, 3]] && kept(cond) == [[3]]
    step(x) = cos.(sin.(x) .* x)
    check(scan, [0.1, -0.4, 0.2]; reference = x -> (step(step(step(step(x)))),),
        name = "kept in a loop")
    check(cond, fill(Int32(0)), [0.1, -0.4, 1.2]; reference = (i, x) -> (step(x),),
        name = "kept in a branch")
end

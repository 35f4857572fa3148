r = seeded("cond")
# Two branches with different residuals and different active results.
branching(index) = """(%0: f64[3], %1: f64[]) {
  %2: f64[3], %3: f64[] = cond $index:i32 %0 %1 {branches=[(%0: f64[3], %1: f64[]) {
    %2: f64[3] = sin %0
    %3: f64[] = exp %1
    %4: f64[3] = broadcast_in_dim %3 {shape=[3], dims=[]}
    %5: f64[3] = mul %2 %4
    return %5 1.0:f64
  }, (%0: f64[3], %1: f64[]) {
    %2: f64[] = reduce_sum %0 {axes=[0]}
    %3: f64[] = mul %2 %1
    return %0 %3
  }]}
  return %2 %3
}"""
first_branch(x, a) = (sin.(x) .* exp(a[]), 1.0)
second_branch(x, a) = (x, sum(x) * a[])
for (index, reference) in (0 => first_branch, 1 => second_branch, 9 => second_branch,
    -1 => first_branch)
    check(branching(index), randn(r, 3), fill(0.3); reference = reference, name = "branch $index")
end

@testset "tangents that no branch reads are no operands" begin
    p = JaxprAD.jvp(program("""(%0: i32[], %1: f64[3], %2: f64[3]) {
      %3: f64[3] = sin %2
      %4: f64[3] = cond %0 %1 %3 {branches=[(%0: f64[3], %1: f64[3]) {
        %2: f64[3] = floor %1
        %3: f64[3] = mul %0 %2
        return %3
      }, (%0: f64[3], %1: f64[3]) { return %0 }]}
      return %4 }"""))
    @test !any(e -> name_of(e) === :cos, p.equations)
    @test length(only(e for e in p.equations if name_of(e) === :cond).inputs) == 4
end

@testset "branches share residual slots of one type" begin
    body(op) = "(%0: f64[], %1: f64[2], %2: f64[2]) { %3: f64[2] = $op %1
      %4: f64[2] = mul %3 %2 return %4 }"
    splits = [JaxprAD.partial_eval(program(body(op)), Bool[1, 1, 0]) for op in ("sin", "cos")]
    @test JaxprAD.residual_slots(splits) == [JaxprAD.TensorType(Float64, JaxprAD.Dim[2])]
end

@test refuses("(%0: f64[], %1: f64[]) { %2: f64[] = cond %0 %1 {branches=[(%0: f64[]) { return
  %0 }]} return %2 }")
@test refuses(
    "(%0: i32[], %1: f64[]) { %2: f64[] = cond %0 %1 {branches=[(%0: f64[]) { return %0 },
(%0: f64[]) { return }]} return %2 }"
)

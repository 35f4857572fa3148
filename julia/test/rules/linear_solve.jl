r = seeded("linear_solve")

# a x = b for a vector a, solved by division; the solver closes over a too, and b is
# closed over by nothing.
map_body = "(%0: f64[3], %1: f64[3]) { %2: f64[3] = mul %0 %1 return %2 }"
solver = "(%0: f64[3], %1: f64[3]) { %2: f64[3] = div %1 %0 return %2 }"
solve_text = """(%0: f64[3], %1: f64[3]) {
  %2: f64[3] = custom_linear_solve %0 %0 %0 %0 %1 {consts=[1, 1, 1, 1], matvec=$map_body,
    vecmat=$map_body, solve=$solver, transpose_solve=$solver}
  return %2 }"""
check(solve_text, randn(r, 3) .+ 3, randn(r, 3); reference = (a, b) -> (b ./ a,), name = "division")
check("""(%0: f64[2,2], %1: f64[2]) {
  %2: f64[2] = custom_linear_solve %0 %0 %0 %0 %1 {consts=[1, 1, 1, 1],
    matvec=(%0: f64[2,2], %1: f64[2]) { %2: f64[2] = dot_general %0 %1 {lhs_contract=[1],
      rhs_contract=[0], lhs_batch=[], rhs_batch=[], dtype=f64, precision=none} return %2 },
    vecmat=(%0: f64[2,2], %1: f64[2]) { %2: f64[2] = dot_general %0 %1 {lhs_contract=[0],
      rhs_contract=[0], lhs_batch=[], rhs_batch=[], dtype=f64, precision=none} return %2 },
    solve=(%0: f64[2,2], %1: f64[2]) { %2: f64[2,1] = reshape %1 {shape=[2, 1]}
      %3: f64[2,1] = triangular_solve %0 %2 {left_side=true, lower=true, transpose_a=false,
        conjugate_a=false, unit_diagonal=false}
      %4: f64[2] = reshape %3 {shape=[2]} return %4 },
    transpose_solve=(%0: f64[2,2], %1: f64[2]) { %2: f64[2,1] = reshape %1 {shape=[2, 1]}
      %3: f64[2,1] = triangular_solve %0 %2 {left_side=true, lower=true, transpose_a=true,
        conjugate_a=false, unit_diagonal=false}
      %4: f64[2] = reshape %3 {shape=[2]} return %4 }}
  return %2 }""", [2.0 0.5; 0.0 3.0], randn(r, 2); name = "a triangular matrix as the map",
    active = [false, true])

half = "(%0: f64[3], %1: f64[3]) { %2: f64[3] = div %1 %0 return %2 }"
check("(%0: f64[3]) { %1: f64[3] = linear_call 4.0:f64 %0 {residuals=1, call=(%0: f64[],
  %1: f64[3]) { %2: f64[3] = broadcast_in_dim %0 {shape=[3], dims=[]}
  %3: f64[3] = div %1 %2 return %3 }, transpose=(%0: f64[], %1: f64[3]) {
  %2: f64[3] = broadcast_in_dim %0 {shape=[3], dims=[]}
  %3: f64[3] = div %1 %2 return %3 }} return %1 }",
    randn(r, 3); reference = x -> (x ./ 4,), name = "linear_call")
@testset "the user's transpose is used" begin
    text = "(%0: f64[3], %1: f64[3]) { %2: f64[3] = linear_call %0 %1 {residuals=1, call=$half,
      transpose=$map_body} return %2 }"
    pull = vjp(program(text), [false, true])
    @test run(pull, Any[fill(4.0, 3), ones(3), ones(3)])[1] == fill(4.0, 3)
end
check("(%0: f64[3], %1: f64[3]) { %2: f64[3] = linear_call %0 %1 {residuals=1, call=$half,
  transpose=$half} return %2 }",
    1 .+ rand(r, 3), randn(r, 3); reference = (f, x) -> (x ./ f,),
    name = "linear_call, the derivative in the residuals")
@testset "without transpose_solve there is only forward mode" begin
    p =
        program(
            replace(replace(solve_text, "transpose_solve=$solver" => "transpose_solve=none"),
                "vecmat=$map_body" => "vecmat=none")
        )
    @test run(jvp(p, [true, true]),
        Any[fill(2.0, 3), ones(3), ones(3), zeros(3)])[2] ≈ fill(-0.25, 3)
    @test_throws JaxprAD.NotDifferentiable vjp(p)
end
@test refuses(replace(solve_text, "matvec=$map_body" => "matvec=none"))
@test refuses(replace(solve_text, "consts=[1, 1, 1, 1]" => "consts=[1, 1, 1, 2]"))

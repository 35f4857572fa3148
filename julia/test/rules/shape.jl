r = seeded("shape")
x234 = normal(r, Float64, [2, 3, 4])

check("(%0: f64[3]) { %1: f64[2,3] = broadcast_in_dim %0 {shape=[2, 3], dims=[1]} return %1 }",
    randn(r, 3);
    reference = x -> (repeat(x, 1, 2),))
check("(%0: f64[3,1]) { %1: f64[3,2,4] = broadcast_in_dim %0 {shape=[3, 2, 4], dims=[0, 1]} return
  %1 }", randn(r, 1, 3))
check("(%0: f64[2,3,4]) { %1: f64[4,6] = reshape %0 {shape=[4, 6]} return %1 }",
    x234; reference = x -> (reshape(x, 6, 4),))
check("(%0: f64[1,3,1]) { %1: f64[3] = squeeze %0 {dims=[0, 2]} return %1 }", randn(r, 1, 3,
        1); reference = x -> (vec(x),))
check("(%0: f64[2,3,4]) { %1: f64[4,2,3] = transpose %0 {perm=[2, 0, 1]} return %1 }", x234;
    reference = x -> (rowmajor(permutedims(rowmajor(x), (3, 1, 2))),))
check("(%0: f64[2,3]) { %1: f64[2,3] = rev %0 {dims=[1]} return %1 }", randn(r, 3,
        2); reference = x -> (x[end:-1:1, :],))
check("(%0: f64[]) { %1: f64[] = rev %0 {dims=[]} return %1 }", randn(r))
check("(%0: f64[2,3], %1: f64[2,0], %2: f64[2,1]) {
  %3: f64[2,4] = concatenate %0 %1 %2 {dim=1} return %3 }",
    randn(r, 3, 2), randn(r, 0, 2), randn(r, 1, 2); reference = (a, b, c) -> (vcat(a, b, c),))
check("(%0: f64[2,5]) { %1: f64[2,2], %2: f64[2,0],
  %3: f64[2,3] = split %0 {axis=1, sizes=[2, 0, 3]} return %1 %3 }", randn(r, 5, 2);
    reference = x -> (x[1:2, :], x[3:5, :]))

@testset "pad: low, high, interior; negative cuts off" begin
    check("(%0: f64[2,3], %1: f64[]) { %2: f64[5,6] = pad %0 %1 {low=[1, 0], high=[2, -1],
      interior=[0, 2]} return %2 }",
        randn(r, 3, 2), randn(r))
    check("(%0: f64[4], %1: f64[]) { %2: f64[3] = pad %0 %1 {low=[-2], high=[-2],
      interior=[1]} return %2 }", randn(r, 4), randn(r);
        reference = (x, v) -> ([x[2], v[], x[3]],))
    check("(%0: f64[2], %1: f64[]) { %2: f64[3] = pad %0 %1 {low=[5], high=[-4],
      interior=[0]} return %2 }", randn(r, 2), randn(r);
        reference = (x, v) -> (fill(v[], 3),))
    check(
        "(%0: f64[0], %1: f64[]) { %2: f64[2] = pad %0 %1 {low=[1], high=[1], interior=[3]} return
    %2 }", zeros(0), randn(r))
    check("(%0: f64[], %1: f64[]) { %2: f64[] = pad %0 %1 {low=[], high=[], interior=[]} return
      %2 }", randn(r), randn(r))
end

@testset "symbolic dimensions" begin
    @test wellformed(program("(%0: f64[<b>,3]) {
      %1: f64[<2*b>,3] = concatenate %0 %0 {dim=0} return %1 }"))
    for text in ["%1: f64[<b + 2>,3] = pad %0 0.0:f64 {low=[1, 0], high=[1, 0], interior=[0, 0]}",
        "%1: f64[3,<b>] = transpose %0 {perm=[1, 0]}",
        "%1: f64[<b>,2] = slice %0 {start=[0, 0], limit=[<b>, 2], strides=[1, 1]}",
        "%1: f64[<b - 1>,3] = slice %0 {start=[1, 0], limit=[<b>, 3], strides=[1, 1]}",
        "%1: f64[<b>,3] = cumsum %0 {axis=0, reverse=false}", "%1: f64[<b>,3] = cummax
          %0 {axis=0, reverse=true}",
        "%1: f64[3] = reduce_max %0 {axes=[0]}", "%1: f64[3] = reduce_prod %0 {axes=[0]}",
        "%1: f64[<b>,3] = sort %0 {dim=0, stable=true, num_keys=1}",
        "%1: f64[<b>,<b>] = dot_general %0 %0 {lhs_contract=[1], rhs_contract=[1],
          lhs_batch=[], rhs_batch=[], dtype=f64, precision=none}"]
        p = program("(%0: f64[<b>,3]) { $text return %1 }")
        @test wellformed(p) && wellformed(jvp(p)) && wellformed(vjp(p))
        occursin("reduce_prod", text) || @test wellformed(vjp(vjp(p)))
    end
end

@testset "refusals" begin
    for text in ["%1: f64[2] = squeeze %0 {dims=[1]}", "%1: f64[3,2] = transpose %0 {perm=[1, 1]}",
        "%1: f64[2,3] = rev %0 {dims=[2]}",
        "%1: f64[5,3] = concatenate %0 %0 {dim=0}", "%1: f64[2,1],
          %2: f64[2,1] = split %0 {axis=1, sizes=[1, 1]}",
        "%1: f64[2,0] = pad %0 0.0:f64 {low=[0, 0], high=[0, -4], interior=[0, 0]}",
        "%1: f64[2,3] = pad %0 0.0:f32 {low=[0, 0], high=[0, 0], interior=[0, 0]}",
        "%1: f64[2,4] = slice %0 {start=[0, 0], limit=[2, 4], strides=[1, 1]}",
        "%1: f64[3] = reduce_sum %0 {axes=[0, 0]}", "%1: f64[2,3] = cumsum %0 {axis=-1,
          reverse=false}"]
        @test refuses("(%0: f64[2,3]) { $text return %1 }")
    end
end

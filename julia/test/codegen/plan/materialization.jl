# Which arrays several loop nests share in memory.

r = seeded("materialization")

"Rows of exponentials divided by numbers, and multiplied by the sums of these quotients."
rows(n, m) = """(%0: f64[$n,$m], %1: f64[$n]) {
  %2: f64[$n,$m] = exp %0
  %3: f64[$n,$m] = broadcast_in_dim %1 {shape=[$n, $m], dims=[0]}
  %4: f64[$n,$m] = div %2 %3
  %5: f64[$n] = reduce_sum %4 {axes=[1]}
  %6: f64[$n,$m] = broadcast_in_dim %5 {shape=[$n, $m], dims=[0]}
  %7: f64[$n,$m] = mul %4 %6
  return %7 }"""
function kept(text)
    p = program(text)
    memory = JaxprAD.plan(p).memory
    [name_of(e) for e in p.equations if haskey(memory, e.outputs[1])]
end

@testset "what follows from a large array at little cost is not kept besides" begin
    @test kept(rows(100, 90)) == [:exp, :mul]
    @test kept(rows(10, 9)) == [:div, :mul]
    for (n, m) in ((100, 90), (10, 9))
        @test native_agrees(rows(n, m), randn(r, m, n), 1 .+ rand(r, n))
    end
end

@testset "what needs another large array is kept" begin
    text = """(%0: f64[100,90], %1: f64[100,90]) {
      %2: f64[100,90] = exp %0
      %3: f64[100,90] = mul %2 %1
      %4: f64[100] = reduce_sum %3 {axes=[1]}
      %5: f64[100,90] = broadcast_in_dim %4 {shape=[100, 90], dims=[0]}
      %6: f64[100,90] = mul %3 %5
      return %6 }"""
    @test kept(text) == [:mul, :mul]
    @test native_agrees(text, randn(r, 90, 100), randn(r, 90, 100))
end

@testset "what a scatter reads one by one is computed before, in vectors" begin
    placed(n, m, f) = """(%0: f64[9,$m], %1: i32[$n,1], %2: f64[$n,$m]) { %3: f64[$n,$m] = $f
      %4: f64[9,$m] = scatter_add %0 %1 %3 {update_window_dims=[1], inserted_window_dims=[0],
      scatter_dims_to_operand_dims=[0], operand_batching_dims=[], scatter_indices_batching_dims=[],
      mode=fill, sorted=false, unique=false} return %4 }"""
    @test :exp in kept(placed(100, 3, "exp %2"))
    @test !(:neg in kept(placed(100, 3, "neg %2")))     # as cheap as reading it
    @test !(:exp in kept(placed(100, 50, "exp %2")))    # rows of vectors
end

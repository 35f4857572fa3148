# Arrays of which a trip overwrites a part: what is kept is that part.

r = seeded("scan_residuals")

# y is multiplied with all of the array in each trip, so that the derivative needs all of it.
updating(n, reverse, update) = """
(%0: f64[24,5], %1: i32[$n], %2: f64[$n,5]) {
  %3: f64[24,5], %4: f64[$n] = scan %0 %1 %2 {length=$n, reverse=$reverse, consts=0, carry=1,
    unroll=1, body=(%0: f64[24,5], %1: i32[], %2: f64[5]) {
    %3: f64[24,5] = mul %0 %0
    %19: f64[5] = reduce_sum %3 {axes=[0]}
    %4: f64[5] = mul %19 0.02:f64
    %5: f64[5] = mul %4 %2
    %6: f64[] = reduce_sum %5 {axes=[0]}
    %7: f64[1,5] = reshape %4 {shape=[1, 5]}
    $update
    return %20 %6
  }}
  return %3 %4
}"""
const WINDOWS = "inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], " *
                "operand_batching_dims=[], scatter_indices_batching_dims=[], sorted=false"
updates = [
    "dynamic_update_slice" => "%20: f64[24,5] = dynamic_update_slice %0 %7 %1 0:i32",
    "two dynamic_update_slices" => """
      %8: f64[24,5] = dynamic_update_slice %0 %7 %1 0:i32
      %9: f64[1,1] = slice %8 {start=[0, 2], limit=[1, 3], strides=[1, 1]}
      %20: f64[24,5] = dynamic_update_slice %8 %9 0:i32 %1""",
    (
        "$op, $mode" => """
          %8: i32[1] = reshape %1 {shape=[1]}
          %20: f64[24,5] = $op %0 %8 %4 {update_window_dims=[0], $WINDOWS, mode=$mode, unique=true}
        """ for op in ("scatter", "scatter_add", "scatter_mul") for mode in ("fill", "clip")
    )...,
    "scatter_add of windows that meet" => """
      %8: i32[2,1] = broadcast_in_dim %1 {shape=[2, 1], dims=[]}
      %9: f64[2,5] = broadcast_in_dim %2 {shape=[2, 5], dims=[1]}
      %20: f64[24,5] = scatter_add %0 %8 %9 {update_window_dims=[1], $WINDOWS, mode=fill,
        unique=false}"""
]
residual_bytes(l) = sum(JaxprAD.bytes(aval(a)) for a in l.known.outputs[end-l.residuals+1:end])
loops(p) = [e for e in p.equations if name_of(e) === :scan]

@testset "$title, reverse=$reverse" for (title, update) in updates, reverse in (false, true)
    text = updating(30, reverse, update)
    # Rows come again, and some are outside.
    rows = rand(r, Int32(-2):Int32(26), 30)
    check(text, 0.5 .* randn(r, 5, 24), rows, 0.1 .* randn(r, 5, 30))
    @test residual_bytes(JaxprAD.linearized(program(text), [true, false, true])) < 12000
    l = JaxprAD.linearized(program(text), [true, false, true]; compact = true)
    # 30 arrays would have 28 800 bytes.
    @test residual_bytes(l) < 8000
    linear = JaxprAD.transpose(l.linear, eachindex(l.linear.inputs) .> l.residuals)
    @test length(loops(linear)) == 2 && length(loops(JaxprAD.optimize(linear))) == 1
    x = Any[0.5 .* randn(r, 5, 24), rows, 0.1 .* randn(r, 5, 30)]
    kept = run(l.known, x)[end-l.residuals+1:end]
    ȳ = Any[randn(r, 5, 24), randn(r, 30)]
    @test relative_error(run(JaxprAD.optimize(linear), vcat(kept, ȳ)),
        run(linear, vcat(kept, ȳ))) < 1e-14
    @test native_agrees(JaxprAD.optimize(linear), vcat(kept, ȳ))
end

@testset "a stack of few trips, or of few numbers, is kept" begin
    update = "%20: f64[24,5] = dynamic_update_slice %0 %7 %1 0:i32"
    for text in (updating(7, false, update), replace(updating(30, false, update), "24" => "1"))
        @test length(loops(linearize(program(text)).known)) == 1
    end
end

@testset "parts that are not much smaller are kept whole, and so is what changes as a whole" begin
    @test length(loops(linearize(program(updating(30, false, """
      %8: f64[24,4] = slice %3 {start=[0, 0], limit=[24, 4], strides=[1, 1]}
      %20: f64[24,5] = dynamic_update_slice %0 %8 %1 0:i32"""))).known)) == 1
    @test length(loops(linearize(program(updating(30, false, """
      %8: f64[24,5] = dynamic_update_slice %0 %7 %1 0:i32
      %20: f64[24,5] = sin %8"""))).known)) == 1
end

# Arrays of short rows with the rows first: the same values, and where.

using JaxprAD: structures_of_arrays, shape, with_gradient

r = seeded("structures of arrays")

"""
A loop over bodies at `n` places in three dimensions, which attract each other; `more` are
equations of a trip after %12, `results` what the trip stacks, `ending` comes after the loop."""
attraction(n; more = "", results = "", stacks = "", ending = "return %2 %3") = """
(%0: f64[$n,3], %1: f64[$n,3]) {
  %2: f64[$n,3], %3: f64[$n,3]$stacks = scan %0 %1 {length=6, reverse=false, consts=0, carry=2,
    unroll=1, body=(%0: f64[$n,3], %1: f64[$n,3]) {
    %2: f64[$n,$n,3] = broadcast_in_dim %0 {shape=[$n, $n, 3], dims=[1, 2]}
    %3: f64[$n,$n,3] = broadcast_in_dim %0 {shape=[$n, $n, 3], dims=[0, 2]}
    %4: f64[$n,$n,3] = sub %2 %3
    %5: f64[$n,$n,3] = mul %4 %4
    %6: f64[$n,$n] = reduce_sum %5 {axes=[2]}
    %7: f64[$n,$n] = add %6 1.0:f64
    %8: f64[$n,$n,3] = broadcast_in_dim %7 {shape=[$n, $n, 3], dims=[0, 1]}
    %9: f64[$n,$n,3] = div %4 %8
    %10: f64[$n,3] = reduce_sum %9 {axes=[1]}
    %11: f64[$n,3] = add %1 %10
    %12: f64[$n,3] = add %0 %11
    $more
    return %12 %11 $results }}
  $ending }"""
loop(p) = first(e for e in p.equations if name_of(e) === :scan)
state(n) = Any[normal(r, Float64, [n, 3]), normal(r, Float64, [n, 3])]

@testset "of $n bodies" for n in (4, 5, 17)
    p, x = program(attraction(n)), state(n)
    q = typecheck(structures_of_arrays(p))
    @test all(v -> shape(v) == [3, n], loop(q).outputs)
    @test names_in(q) == [:transpose, :transpose, :scan, :transpose, :transpose]
    @test !(:transpose in names_in(loop(q)[:body]))
    @test relative_error(run(q, x), run(p, x)) < 1e-13
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "stacks of two loops" begin
    p = program(attraction(5; ending = "%4: f64[] = reduce_sum %2 {axes=[0, 1]} return %4"))
    g, x = with_gradient(p, trues(2)), state(5)
    q = typecheck(structures_of_arrays(g))
    loops = filter(e -> name_of(e) === :scan, q.equations)
    @test length(loops) == 2
    stacked = [shape(v) for v in loops[1].outputs[3:end]]
    @test [6, 3, 5] in stacked && !([6, 5, 3] in stacked)
    @test loops[2].inputs ⊇ filter(v -> shape(v) == [6, 3, 5], loops[1].outputs)
    @test relative_error(run(q, x), run(g, x)) < 1e-12
    @test native_agrees(g, x; tolerance = 1e-12)
end

@testset "stacks that are results" begin
    p = program(attraction(6; results = "%9 %10", stacks = ", %4: f64[6,6,6,3], %5: f64[6,6,3]",
        ending = "return %2 %4 %5"))
    q, x = typecheck(structures_of_arrays(p)), state(6)
    @test shape(loop(q).outputs[3]) == [6, 3, 6, 6]
    @test relative_error(run(q, x), run(p, x)) < 1e-13
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "pieces, rows and what is of no rows" begin
    more = """
    %13: f64[6,1] = slice %12 {start=[0, 0], limit=[6, 1], strides=[1, 1]}
    %14: f64[6] = reshape %13 {shape=[6]}
    %15: f64[6] = sin %14
    %16: f64[6,1] = broadcast_in_dim %15 {shape=[6, 1], dims=[0]}
    %17: f64[6,3] = concatenate %16 %13 %16 {dim=1}
    %18: f64[3] = reduce_sum %17 {axes=[0]}
    %19: f64[6,3] = broadcast_in_dim %18 {shape=[6, 3], dims=[1]}
    %20: f64[6,3] = mul %17 %19
    %21: f64[3,6] = transpose %20 {perm=[1, 0]}
    %22: f64[3,6] = cos %21
    %23: f64[6,3] = cumsum %20 {axis=0, reverse=false}"""
    p = program(attraction(6; more = more, results = "%22 %23",
        stacks = ", %4: f64[6,3,6], %5: f64[6,6,3]", ending = "return %2 %4 %5"))
    q, x = typecheck(structures_of_arrays(p)), state(6)
    @test shape(loop(q).outputs[1]) == [3, 6]
    @test relative_error(run(q, x), run(p, x)) < 1e-13
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "one result for two carried arrays" begin
    p = program(replace(attraction(5), "return %12 %11" => "return %12 %12"))
    q, x = typecheck(structures_of_arrays(p)), state(5)
    @test all(v -> shape(v) == [3, 5], loop(q).outputs)
    @test relative_error(run(q, x), run(p, x)) < 1e-13
end

@testset "in a branch, and in a loop in a loop" begin
    other = "(%0: f64[5,3], %1: f64[5,3]) { return %1 %0 }"
    branch = "cond %2 %0 %1 {branches=[$(attraction(5)), $other]}"
    p = program("(%0: f64[5,3], %1: f64[5,3], %2: i32[]) {
      %3: f64[5,3], %4: f64[5,3] = $branch return %3 %4 }")
    q, x = typecheck(structures_of_arrays(p)), state(5)
    for k in Int32[0, 1]
        @test relative_error(run(q, vcat(x, [fill(k)])), run(p, vcat(x, [fill(k)]))) < 1e-13
    end
    p = program("""(%0: f64[5,3], %1: f64[5,3]) {
      %2: f64[5,3], %3: f64[5,3] = scan %0 %1 {length=3, reverse=false, consts=0, carry=2,
        unroll=1, body=$(attraction(5))}
      return %2 %3 }""")
    q = typecheck(structures_of_arrays(p))
    # the outer loop itself has nothing to gain, and no vector is in three of the inner one
    @test shape(loop(loop(q)[:body]).outputs[1]) == [3, 5]
    @test relative_error(run(q, x), run(p, x)) < 1e-12
    @test native_agrees(p, x; tolerance = 1e-11)
end

@testset "columns taken apart and put together" begin
    p = program("""(%0: f64[9,2], %1: f64[9]) {
      %2: f64[9,2] = scan %1 %0 {length=6, reverse=false, consts=1, carry=1, unroll=1,
        body=(%0: f64[9], %1: f64[9,2]) {
          %2: f64[9,1] = slice %1 {start=[0, 0], limit=[9, 1], strides=[1, 1]}
          %3: f64[9] = squeeze %2 {dims=[1]}
          %4: f64[9,1] = slice %1 {start=[0, 1], limit=[9, 2], strides=[1, 1]}
          %5: f64[9] = reshape %4 {shape=[9]}
          %6: f64[9] = mul %3 %5
          %7: f64[9,1] = reshape %6 {shape=[9, 1]}
          %8: f64[9] = sub %5 %0
          %9: f64[9,1] = broadcast_in_dim %8 {shape=[9, 1], dims=[0]}
          %10: f64[9,2] = concatenate %7 %9 {dim=1}
          %11: f64[9,2] = sin %10
          return %11 }}
      return %2 }""")
    q = typecheck(structures_of_arrays(p))
    x = Any[normal(r, Float64, [9, 2]), normal(r, Float64, [9])]
    @test shape(loop(q).outputs[1]) == [2, 9]
    @test relative_error(run(q, x), run(p, x)) < 1e-14
    @test native_agrees(p, x; tolerance = 1e-13)
end

@testset "what is padded between rows" begin
    p = program("""(%0: f64[9,8,3]) {
      %1: f64[9,8,3] = scan %0 {length=6, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[9,8,3]) {
          %1: f64[7,6,3] = slice %0 {start=[0, 2, 0], limit=[7, 8, 3], strides=[1, 1, 1]}
          %2: f64[7,6,3] = cos %1
          %3: f64[9,8,3] = pad %2 0.0:f64 {low=[1, 1, 0], high=[1, 1, 0], interior=[0, 0, 0]}
          %4: f64[9,8,3] = add %0 %3
          return %4 }}
      return %1 }""")
    q, x = typecheck(structures_of_arrays(p)), Any[normal(r, Float64, [9, 8, 3])]
    @test shape(loop(q).outputs[1]) == [3, 9, 8]
    @test relative_error(run(q, x), run(p, x)) < 1e-14
    @test native_agrees(p, x; tolerance = 1e-13)
end

# ---- batches

"""
A loop of matrices, `n` × 3 × 3, times others of a batch, times one for all, transposed, and with
sums of rows."""
matrices(n; more = "") = """(%0: f64[$n,3,3], %1: f64[$n,3,3], %2: f64[3,3]) {
  %3: f64[$n,3,3], %4: f64[6,$n,3,3] = scan %0 %2 %1 {length=6, reverse=false, consts=2, carry=1,
    unroll=1, body=(%0: f64[$n,3,3], %1: f64[3,3], %2: f64[$n,3,3]) {
    %3: f64[$n,3,3] = dot_general %0 %2 {lhs_contract=[2], rhs_contract=[1], lhs_batch=[0],
      rhs_batch=[0], dtype=f64, precision=none}
    %4: f64[3,$n,3] = dot_general %1 %3 {lhs_contract=[1], rhs_contract=[1], lhs_batch=[],
      rhs_batch=[], dtype=f64, precision=none}
    %5: f64[$n,3,3] = transpose %4 {perm=[1, 2, 0]}
    %6: f64[$n,3,3] = tanh %5
    %7: f64[$n,3] = reduce_sum %6 {axes=[2]}
    %8: f64[$n,3,3] = broadcast_in_dim %7 {shape=[$n, 3, 3], dims=[0, 1]}
    %9: f64[$n,3,3] = sub %6 %8
    $more
    return %9 %6 }}
  %5: f64[] = reduce_sum %3 {axes=[0, 1, 2]}
  return %5 }"""
matrix_inputs(n) =
    Any[normal(r, Float64, shape) ./ 2 for shape in ([n, 3, 3], [n, 3, 3], [3, 3])]

@testset "items last, of $n" for n in (16, 21)
    p, x = program(matrices(n)), matrix_inputs(n)
    q = typecheck(structures_of_arrays(p))
    @test shape(loop(q).outputs[1]) == [3, 3, n]
    @test !(:dot_general in names_in(loop(q)[:body]))
    @test relative_error(run(q, x), run(p, x)) < 1e-13
    @test native_agrees(p, x; tolerance = 1e-12)
    g = with_gradient(p, trues(3))
    q = typecheck(structures_of_arrays(g))
    loops = filter(e -> name_of(e) === :scan, q.equations)
    @test [6, 3, 3, n] in map(shape, loops[1].outputs)
    for l in loops, e in l[:body].equations
        name_of(e) === :transpose && shape(e.outputs[1]) != [3, 3] && @test e[:perm][end] == 2
    end
    @test relative_error(run(q, x), run(g, x)) < 1e-12
    @test native_agrees(g, x; tolerance = 1e-11)
end

@testset "items stay first where they are few, or where one equation wants them so" begin
    @test shape(loop(structures_of_arrays(program(matrices(15)))).outputs[1]) == [15, 3, 3]
    sorted = "%10: f64[16,3,3] = cumsum %9 {axis=0, reverse=false}"
    p = program(replace(matrices(16; more = sorted), "return %9 %6" => "return %10 %6"))
    @test shape(loop(structures_of_arrays(p)).outputs[1]) == [16, 3, 3]
    @test :dot_general in names_in(loop(structures_of_arrays(p))[:body])
end

@testset "a batch of bodies" begin
    batch = foldl(replace, ("f64[5" => "f64[20,5", "shape=[5" => "shape=[20, 5",
            "dims=[0, 1]" => "dims=[0, 1, 2]", "dims=[1, 2]" => "dims=[0, 2, 3]",
            "dims=[0, 2]" => "dims=[0, 1, 3]", "axes=[2]" => "axes=[3]", "axes=[1]" => "axes=[2]");
        init = attraction(5))
    p, x = program(batch), Any[normal(r, Float64, [20, 5, 3]) for _ in 1:2]
    q = typecheck(structures_of_arrays(p))
    @test all(v -> shape(v) == [5, 3, 20], loop(q).outputs)
    @test relative_error(run(q, x), run(p, x)) < 1e-13
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "arrays stay as they are where" begin
    plain = "%1: f64[9,3] = mul %0 %0 %2: f64[9,3] = sin %1"
    norms = "%1: f64[9,3] = mul %0 %0 %2: f64[9] = reduce_sum %1 {axes=[1]}"
    for text in ("(%0: f64[9,3]) { $plain return %2 }", "(%0: f64[9,3]) { $norms return %2 }",
        "(%0: f64[9,8]) { $(replace(norms, "9,3" => "9,8")) return %2 }", attraction(3))
        p = program(text)
        @test structures_of_arrays(p) === p
    end
    # what is read in another way in the loop would be transposed in each trip
    p = program(attraction(5; more = "%13: f64[5,5,3] = cumsum %4 {axis=0, reverse=false}
      %14: f64[5,5,3] = cumsum %5 {axis=0, reverse=false}", results = "%13 %14",
        stacks = ", %4: f64[6,5,5,3], %5: f64[6,5,5,3]"))
    @test shape(loop(structures_of_arrays(p)).outputs[1]) == [5, 3]
end

# Carried arrays whose windows lie together: the same values, in random loops.

using Random: shuffle

r = seeded("reorder carries")
list(numbers) = "[" * join(numbers, ", ") * "]"
type(sizes) = "f64" * replace(list(sizes), " " => "")

"""
Equations on the array `%v` of a body in which `%1` is where windows begin along each axis, and the
name of the array after them. `sizes` are those of the windows."""
function through_gather(v, n, sizes, dropped)
    axes = shuffle(r, [d for d in 0:2 if sizes[d+1] == 1])
    kept = [sizes[d+1] for d in 0:2 if !(d in dropped)]
    batching = "operand_batching_dims=[], "
    mode = rand(r, ["clip", "fill"])
    over(k) = list(0:k-1)
    op = rand(r, ["scatter", "scatter_add", "scatter_mul", "scatter_max"])
    starts = "%$(n): i32[$(length(axes))] = broadcast_in_dim %1 {shape=[$(length(axes))], dims=[]}"
    reading = "%$(n+1): $(type(kept)) = gather %$v %$n {offset_dims=$(over(length(kept))),
      collapsed_slice_dims=$(list(sort(dropped))), start_index_map=$(list(axes)), $batching
      start_indices_batching_dims=[], slice_sizes=$(list(sizes)), mode=$mode,
      fill_value=$(mode == "fill" ? "0" : "none"), sorted=false, unique=true}"
    writing = "%$(n+3): $(type(SHAPE)) = $op %$v %$n %$(n+2) {
      update_window_dims=$(over(length(kept))), inserted_window_dims=$(list(sort(dropped))),
      scatter_dims_to_operand_dims=$(list(axes)), $batching scatter_indices_batching_dims=[],
      mode=$mode, sorted=false, unique=true}"
    "$starts $reading %$(n+2): $(type(kept)) = cos %$(n+1) $writing", n + 3, n + 1
end
function through_slices(v, n, sizes, dropped)
    reading = "%$n: $(type(sizes)) = dynamic_slice %$v %1 %1 %1 {sizes=$(list(sizes))}"
    writing = "%$(n+2): $(type(SHAPE)) = dynamic_update_slice %$v %$(n+1) %1 %1 %1"
    "$reading %$(n+1): $(type(sizes)) = cos %$n $writing", n + 2, n
end
const SHAPE = [9, 6, 8]

"A loop whose trips read and write windows that extend along `axes`, and sums what they read."
function windows_loop(axes; trips = 60)
    sizes = [d in axes ? rand(r, [SHAPE[d+1], SHAPE[d+1] - 2]) : 1 for d in 0:2]
    v, n, equations = 0, 3, String[]
    total = 2
    for _ in 1:rand(r, 1:3)
        through = rand(r, [through_gather, through_slices])
        text, v, read = through(v, n, sizes, filter(d -> !(d in axes) && rand(r, Bool), 0:2))
        push!(equations, text)
        push!(equations, "%$(v+1): f64[] = reduce_sum %$read {axes=$(list(0:rank(text, read)-1))}
          %$(v+2): f64[] = add %$total %$(v+1)")
        total, n = v + 2, v + 3
    end
    """(%0: $(type(SHAPE)), %1: i32[$trips], %2: f64[]) {
      %3: $(type(SHAPE)), %4: f64[] = scan %0 %2 %1 {length=$trips, reverse=$(rand(r, Bool)),
        consts=0, carry=2, unroll=1, body=(%0: $(type(SHAPE)), %2: f64[], %1: i32[]) {
        $(join(equations, "\n"))
        return %$v %$total
      }}
      %5: $(type(SHAPE)) = sin %3
      return %5 %4 }"""
end
"The rank of the variable of that number."
rank(text, number) = length(split(match(Regex("%$number: f64\\[([0-9,]*)\\]"), text)[1], ","))

inputs(trips = 60) = Any[randn(r, reverse(SHAPE)...), Int32.(rand(r, -2:9, trips)), fill(0.5)]

@testset "windows along $axes" for axes in ([0], [1], [0, 1], [0, 2]), _ in 1:4
    text = windows_loop(axes)
    p = program(text)
    q = JaxprAD.reorder_carries(p)
    JaxprAD.typecheck(q)
    @test names_in(q) == [:transpose, :scan, :transpose, :sin]
    x = inputs()
    @test isequal(JaxprAD.evaluate(q, x), JaxprAD.evaluate(p, x))
    @test native_agrees(text, x...)
end

@testset "windows that lie together stay as they are" for axes in ([2], [1, 2], [0, 1, 2])
    p = program(windows_loop(axes))
    @test names_in(JaxprAD.reorder_carries(p)) == [:scan, :sin]
end

@testset "what is added to zeros in a loop over a batch" begin
    # The zeros are broadcast twice: as vmap makes them of those of an item.
    text = """(%0: f64[9,6,8], %1: i32[60], %2: f64[60,9]) {
      %3: f64[9,6,8] = scan %0 %1 %2 {length=60, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[9,6,8], %1: i32[], %2: f64[9]) {
        %3: f64[6,8] = broadcast_in_dim 0.0:f64 {shape=[6, 8], dims=[]}
        %4: f64[9,6,8] = broadcast_in_dim %3 {shape=[9, 6, 8], dims=[1, 2]}
        %5: f64[9,1,1] = reshape %2 {shape=[9, 1, 1]}
        %6: f64[9,6,8] = dynamic_update_slice %4 %5 0:i32 %1 %1
        %7: f64[9,6,8] = add %0 %6
        return %7
      }}
      return %3 }"""
    q = JaxprAD.reorder_carries(JaxprAD.add_in_place(program(text)))
    @test names_in(q) == [:transpose, :scan, :transpose]
    @test names_in(q.equations[2][:body]) == [:reshape, :transpose, :add_window]
    @test native_agrees(text, inputs()[1:2]..., randn(r, 9, 60))
end

@testset "it stays: $why" for (why, trips, after) in (
    ("all of the array is read in a trip", 60, "%9: f64[9,6,8] = mul %8 %8 return %9"),
    ("the trips touch few elements", 20, "return %8"))
    text = """(%0: f64[9,6,8], %1: i32[$trips]) {
      %3: f64[9,6,8] = scan %0 %1 {length=$trips, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[9,6,8], %1: i32[]) {
        %7: f64[9,1,1] = dynamic_slice %0 0:i32 %1 %1 {sizes=[9, 1, 1]}
        %8: f64[9,6,8] = dynamic_update_slice %0 %7 0:i32 %1 0:i32
        $after
      }}
      return %3 }"""
    @test names_in(JaxprAD.reorder_carries(program(text))) == [:scan]
end

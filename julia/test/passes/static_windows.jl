# Windows at places that the Program knows.

using JaxprAD: static_windows, evaluate

static_names(text) = names_in(static_windows(program(text)))
gather_attributes(sizes, mode, fill) =
    "offset_dims=[0], collapsed_slice_dims=[0], start_index_map=[0, 1], " *
    "operand_batching_dims=[], start_indices_batching_dims=[], slice_sizes=$sizes, mode=$mode, " *
    "fill_value=$fill, sorted=true, unique=true"
scatter_attributes(mode) =
    "update_window_dims=[0], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0, 1], " *
    "operand_batching_dims=[], scatter_indices_batching_dims=[], mode=$mode, sorted=true, " *
    "unique=true"
indices(i, j) = "%2: i32[1] = broadcast_in_dim $i:i32 {shape=[1], dims=[]}
  %3: i32[1] = broadcast_in_dim $j:i32 {shape=[1], dims=[]}
  %4: i32[2] = concatenate %2 %3 {dim=0}"
gathered_at(i, j, mode) = "(%0: f64[5,7]) { $(indices(i, j))
  %5: f64[3] = gather %0 %4 {$(gather_attributes([1, 3], mode, mode == "fill" ? 9.5 : "none"))}
  return %5 }"
scattered_at(op, i, j, mode) = "(%0: f64[5,7], %1: f64[3]) { $(indices(i, j))
  %5: f64[5,7] = $op %0 %4 %1 {$(scatter_attributes(mode))} return %5 }"
r = seeded("static windows")
operands() = Any[randn(r, 7, 5), randn(r, 3)]
"The Program after the pass, and in native code, gives what it gave."
function same_results(text, x...)
    p = program(text)
    JaxprAD.typecheck(static_windows(p))
    evaluate(static_windows(p), collect(Any, x)) == evaluate(p, collect(Any, x)) &&
        native_agrees(p, collect(Any, x))
end

@testset "at $i, $j, $mode" for (i, j) in ((0, 0), (4, 4), (2, 1), (2, 5), (-1, 2), (7, -3)),
    mode in ("fill", "clip", "promise")

    inside = 0 <= i <= 4 && 0 <= j <= 4
    x, u = operands()
    @test static_names(gathered_at(i, j, mode)) ==
          (inside || mode != "fill" ? [:slice, :reshape] :
           [:broadcast_in_dim, :broadcast_in_dim, :concatenate, :gather])
    @test same_results(gathered_at(i, j, mode), x)
    for (op, names) in ("scatter" => [:reshape, :dynamic_update_slice],
        "scatter_add" => [:reshape, :pad, :add], "scatter_sub" => [:reshape, :neg, :pad, :add])

        text = scattered_at(op, i, j, mode)
        @test (static_names(text) == names) == (inside || mode == "clip")
        @test same_results(text, x, u)
    end
    @test last(static_names(scattered_at("scatter_mul", i, j, mode))) == :scatter_mul
end

@testset "dynamic slices, and starts that are computed" begin
    text(start) = "(%0: f64[6], %1: i32[]) { %2: bool[] = lt -2:i32 0:i32
      %3: i32[] = add -2:i32 6:i32 %4: i32[] = select_n %2 -2:i32 %3
      %5: f64[2] = dynamic_slice %0 $start {sizes=[2]} return %5 }"
    @test static_names(text("%4")) == static_names(text("9:i32")) == [:slice]
    @test :dynamic_slice in static_names(text("%1"))
    @test same_results(text("%4"), randn(r, 6), fill(Int32(1)))
    @test same_results(text("9:i32"), randn(r, 6), fill(Int32(1)))
end

@testset "several windows, and places that differ in each trip, stay" begin
    several = "(%0: f64[6]) { %1: i32[2,1] = broadcast_in_dim 1:i32 {shape=[2,1], dims=[]}
      %2: f64[2] = gather %0 %1 {offset_dims=[], collapsed_slice_dims=[0], start_index_map=[0],
        operand_batching_dims=[], start_indices_batching_dims=[], slice_sizes=[1], mode=clip,
        fill_value=none, sorted=false, unique=false} return %2 }"
    @test static_names(several) == [:broadcast_in_dim, :gather]
    loop = program("(%0: f64[6]) { %1: i32[], %2: f64[6] = scan 0:i32 %0 {length=3, reverse=false,
      consts=0, carry=2, unroll=1, body=(%0: i32[], %1: f64[6]) { %2: i32[] = add %0 1:i32
        %3: f64[2] = dynamic_slice %1 %0 {sizes=[2]} %4: f64[2] = dynamic_slice %1 1:i32 {sizes=[2]}
        %5: f64[2] = mul %3 %4 %6: f64[6] = dynamic_update_slice %1 %5 %2 return %2 %6 }}
      return %2 }")
    body = static_windows(loop).equations[1][:body]
    @test names_in(body) == [:add, :dynamic_slice, :slice, :mul, :dynamic_update_slice]
end

# Of these the update is most of the array or not, and reads the array itself at other places, or
# what replaced it before.
updates(n, m, start, u) = "(%0: f64[$n], %1: f64[$n]) { %2: f64[$n], %3: f64[$n] = scan %0 %1 {
  length=5, reverse=false, consts=0, carry=2, unroll=1, body=(%0: f64[$n], %1: f64[$n]) {
    %2: f64[$m] = slice %0 {start=[0], limit=[$m], strides=[1]}
    %3: f64[$m] = slice %1 {start=[$(n - m)], limit=[$n], strides=[1]}
    %4: f64[$m] = mul %2 %3 %5: f64[$m] = mul %4 0.25:f64
    %6: f64[$n] = dynamic_update_slice %$u %5 $start:i32
    %7: f64[$m] = slice %6 {start=[$(n - m)], limit=[$n], strides=[1]}
    %8: f64[$m] = add %7 %2 %9: f64[$m] = mul %8 0.5:f64
    %10: f64[$n] = dynamic_update_slice %1 %9 1:i32 return %6 %10 }} return %2 %3 }"
@testset "updates in a loop: $m of $n from $start, of %$u" for (n, m) in
                                                              ((70, 66), (70, 20), (9, 6), (3, 1)),
    start in (0, 1, n - m, n), u in (0, 1)

    text = updates(n, m, start, u)
    x = Any[randn(r, n), randn(r, n)]
    @test native_agrees(text, x...)
    @test native_agrees(vjp(program(text), [true, true]), Any[x..., randn(r, n), randn(r, n)])
end

@testset "derivatives have no indices" begin
    p = program(scattered_at("scatter", 2, 1, "fill"))
    linear = JaxprAD.linearized(p, [true, true]).linear
    @test names_in(linear) == [:reshape, :dynamic_update_slice]
    @test length(linear.inputs) == 2
end

# Equations on arrays with their axes in another order give the same, in that order.

using JaxprAD: with_axes, own_order, aval, shape
using Random: shuffle

r = seeded("axis orders")
permuted(x, order) = JaxprAD.permute_axes(x, order)

"Whether an equation in a random order, given random orders, computes the same."
function same_in_another_order(text)
    p = program(text)
    e = only(p.equations)
    order = shuffle(r, own_order(e.outputs[1]))
    given = [shuffle(r, own_order(a)) for a in e.inputs]
    attrs, from = with_axes(e.op, e, order, given)
    all(((a, o),) -> sort(o) == own_order(a), zip(e.inputs, from)) || return false
    value(a) =
        a isa JaxprAD.Literal ? fill(a.value) :
        dtype(a) <: Integer ? asarray(rand(r, dtype(a)(-1):dtype(a)(5), reverse(shape(a))...)) :
        normal(r, dtype(a), shape(a))
    values = Any[value(a) for a in e.inputs]
    types = [JaxprAD.TensorType(dtype(a), shape(a)[o.+1]) for (a, o) in zip(e.inputs, from)]
    result = JaxprAD.infer(e.op, types, attrs)
    shape(e.outputs[1])[order.+1] == result[1].shape || return false
    y = JaxprAD.evaluate(e.op, Any[permuted(x, o) for (x, o) in zip(values, from)], attrs, result)
    expected = JaxprAD.evaluate(e.op, values, e.attrs, [aval(v) for v in e.outputs])
    y[1] ≈ permuted(expected[1], order)
end

for (inputs, equation) in (
    "%0: f64[2,3,4]" => "f64[2,3,4] = sin %0",
    "%0: f64[2,3,4]" => "f64[2,3,4] = mul 2.0:f64 %0",
    "%0: f64[2,3]" => "f64[4,2,1,3] = broadcast_in_dim %0 {shape=[4, 2, 1, 3], dims=[1, 3]}",
    "%0: f64[2,1,3]" => "f64[2,5,3] = broadcast_in_dim %0 {shape=[2, 5, 3], dims=[0, 1, 2]}",
    "%0: f64[]" => "f64[2,3] = broadcast_in_dim %0 {shape=[2, 3], dims=[]}",
    "%0: f64[2,3,4,5]" => "f64[3,5] = reduce_sum %0 {axes=[0, 2]}",
    "%0: f64[2,3,4]" => "f64[2,3] = reduce_max %0 {axes=[2]}",
    "%0: f64[2,3]" => "f64[] = reduce_prod %0 {axes=[0, 1]}",
    "%0: f64[2,1,3,1]" => "f64[2,3,1] = squeeze %0 {dims=[1]}",
    "%0: f64[2,1,3]" => "f64[1,2,3,1] = reshape %0 {shape=[1, 2, 3, 1]}",
    "%0: f64[1,3,2]" => "f64[3,2] = reshape %0 {shape=[3, 2]}",
    "%0: f64[2,3], %1: f64[2,4]" => "f64[2,7] = concatenate %0 %1 {dim=1}",
    "%0: f64[2,3,4]" => "f64[2,3,4] = rev %0 {dims=[0, 2]}",
    "%0: f64[7,3,4]" =>
        "f64[3,2,1] = slice %0 {start=[1, 0, 3], limit=[7, 2, 4], strides=[2, 1, 1]}",
    "%0: f64[2,3], %1: f64[]" =>
        "f64[5,2] = pad %0 %1 {low=[1, -1], high=[1, 0], interior=[1, 0]}",
    "%0: f64[5,3], %1: i32[4,1]" =>
        "f64[4,3] = gather %0 %1 {offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0],
        operand_batching_dims=[], start_indices_batching_dims=[], slice_sizes=[1, 3], mode=fill,
        fill_value=0, sorted=false, unique=false}",
    "%0: f64[2,5,3,4,3], %1: i32[3,2,4,2]" =>
        "f64[3,2,2,4,4] = gather %0 %1 {offset_dims=[2, 4], collapsed_slice_dims=[2],
        start_index_map=[2, 1], operand_batching_dims=[0, 4], start_indices_batching_dims=[1, 0],
        slice_sizes=[1, 2, 1, 4, 1], mode=clip, fill_value=none, sorted=false, unique=false}",
    "%0: f64[5,3], %1: i32[4,1], %2: f64[4,3]" =>
        "f64[5,3] = scatter_add %0 %1 %2 {update_window_dims=[1], inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0], operand_batching_dims=[],
        scatter_indices_batching_dims=[], mode=fill, sorted=false, unique=false}",
    "%0: f64[2,5,3,4,3], %1: i32[3,2,4,2], %2: f64[3,2,2,4,4]" =>
        "f64[2,5,3,4,3] = scatter_mul %0 %1 %2 {update_window_dims=[2, 4],
        inserted_window_dims=[2], scatter_dims_to_operand_dims=[2, 1],
        operand_batching_dims=[0, 4], scatter_indices_batching_dims=[1, 0], mode=clip,
        sorted=false, unique=false}",
)
    @testset "$equation" begin
        text = "($inputs) { %9: $equation return %9 }"
        @test all(same_in_another_order(text) for _ in 1:10)
    end
end

@testset "a reduction takes the given order where that serves" begin
    text = "(%0: f64[2,3,4]) { %1: f64[2,3] = reduce_sum %0 {axes=[2]} return %1 }"
    e = only(program(text).equations)
    @test with_axes(e.op, e, [0, 1], [[0, 2, 1]])[2] == [[0, 2, 1]]
    @test with_axes(e.op, e, [1, 0], [[0, 2, 1]])[2] == [[2, 1, 0]]
end

@testset "not of others" begin
    for text in ("(%0: f64[2,6]) { %1: f64[3,4] = reshape %0 {shape=[3, 4]} return %1 }",
        "(%0: f64[2,6]) { %1: f64[2,6] = cumsum %0 {axis=0, reverse=false} return %1 }")
        e = only(program(text).equations)
        @test with_axes(e.op, e, [1, 0], [[1, 0]]) === nothing
    end
end

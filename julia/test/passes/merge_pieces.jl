# Slices of one array that are put together again.

using JaxprAD: merge_pieces, evaluate

"The operations of what is left of a Program."
operations(p) = [name_of(e) for e in merge_pieces(p).equations]

const STACKED = program("""(%0: f64[4,2], %1: f64[2]) {
  %2: f64[1,2] = slice %0 {start=[1,0], limit=[2,2], strides=[1,1]}
  %3: f64[2] = squeeze %2 {dims=[0]}
  %4: f64[1,2] = slice %0 {start=[2,0], limit=[3,2], strides=[1,1]}
  %5: f64[2] = reshape %4 {shape=[2]}
  %6: f64[1,2] = slice %0 {start=[3,0], limit=[4,2], strides=[1,1]}
  %7: f64[2] = reshape %6 {shape=[2]}
  %8: f64[8] = concatenate %1 %3 %5 %7 {dim=0}
  return %8
}""")

@testset "successive slices become one" begin
    @test operations(STACKED) == [:slice, :reshape, :concatenate]
    x = Any[randn(seeded("x"), 2, 4), [1.0, 2.0]]
    @test evaluate(merge_pieces(STACKED), x) == evaluate(STACKED, x)
    JaxprAD.typecheck(merge_pieces(STACKED))
end

@testset "others stay" begin
    apart = program("""(%0: f64[4]) {
      %1: f64[1] = slice %0 {start=[2], limit=[3], strides=[1]}
      %2: f64[1] = slice %0 {start=[1], limit=[2], strides=[1]}
      %3: f64[2] = concatenate %1 %2 {dim=0}
      return %3
    }""")
    @test operations(apart) == [:slice, :slice, :concatenate]
    columns = program("""(%0: f64[2,2]) {
      %1: f64[2,1] = slice %0 {start=[0,0], limit=[2,1], strides=[1,1]}
      %2: f64[2] = reshape %1 {shape=[2]}
      %3: f64[2,1] = slice %0 {start=[0,1], limit=[2,2], strides=[1,1]}
      %4: f64[2] = reshape %3 {shape=[2]}
      %5: f64[4] = concatenate %2 %4 {dim=0}
      return %5
    }""")
    @test :slice in operations(columns) && length(operations(columns)) == 5
end

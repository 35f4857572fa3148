r = seeded("slicing")

check("(%0: f64[7,3]) { %1: f64[3,2] = slice %0 {start=[1, 0], limit=[7, 2], strides=[2, 1]} return
  %1 }", randn(r, 3, 7);
    reference = x -> (x[1:2, 2:2:7],))
check("(%0: f64[4]) { %1: f64[0] = slice %0 {start=[2], limit=[2], strides=[3]} return %1 }",
    randn(r, 4))
check("(%0: f64[]) { %1: f64[] = slice %0 {start=[], limit=[], strides=[]} return %1 }", randn(r))

dynamic_slice = "(%0: f64[5,4], %1: i32[], %2: i32[]) {
  %3: f64[2,3] = dynamic_slice %0 %1 %2 {sizes=[2, 3]} return %3 }"
dynamic_update = "(%0: f64[5,4], %1: f64[2,3], %2: i32[], %3: i32[]) {
  %4: f64[5,4] = dynamic_update_slice %0 %1 %2 %3 return %4 }"
for (i, j) in [(1, 1), (-3, 9), (4, 0)]      # starts move inside
    at, to = clamp(i, 0, 3), clamp(j, 0, 1)
    check(dynamic_slice, randn(r, 4, 5), Int32(i), Int32(j);
        reference = (x, i, j) -> (x[to+1:to+3, at+1:at+2],), name = "dynamic_slice at $i, $j")
    check(dynamic_update, randn(r, 4, 5), randn(r, 3, 2), Int32(i), Int32(j);
        name = "dynamic_update_slice at $i, $j",
        reference = (x, u, i, j) -> (y = copy(x); y[to+1:to+3, at+1:at+2] = u; (y,)))
end
check_value("(%0: f64[4], %1: u64[]) { %2: f64[1] = dynamic_slice %0 %1 {sizes=[1]} return %2 }",
    (x, i) -> ([x[4]],), randn(r, 4), typemax(UInt64))
@test refuses("(%0: f64[4], %1: f64[]) { %2: f64[1] = dynamic_slice %0 %1 {sizes=[1]} return %2 }")
@test refuses("(%0: f64[4], %1: i32[]) { %2: f64[5] = dynamic_slice %0 %1 {sizes=[5]} return %2 }")

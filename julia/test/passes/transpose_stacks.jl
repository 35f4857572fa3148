# Stacks that are transposed trip by trip: the same values, in random loops.

using Random: shuffle

r = seeded("transpose stacks")
list(numbers) = "[" * join(numbers, ", ") * "]"
type(sizes) = "f64" * replace(list(sizes), " " => "")

"""
A loop over slices of a transposed array, and what it stacks, transposed; `last_line` says what is
returned. The axes are in random order, that of the trips in its place where `kept`."""
function stacks_loop(last_line; kept = true, trips = 5)
    sizes = [trips, rand(r, 2:40), rand(r, 1:4)]
    order() = kept ? [0; shuffle(r, 1:2)] : shuffle(r, [[1, 0, 2], [2, 1, 0]])[1]
    perm, back = order(), order()
    kept || (sizes .= trips)
    given = sizes[invperm(perm.+1)]
    slice, stacked = type(sizes[2:end]), type(sizes)
    """(%0: $(type(given)), %1: f64[]) {
      %2: $stacked = transpose %0 {perm=$(list(perm))}
      %3: f64[], %4: $stacked = scan %1 %2 {length=$trips, reverse=$(rand(r, Bool)), consts=0,
        carry=1, unroll=1, body=(%0: f64[], %1: $slice) {
        %2: $slice = broadcast_in_dim %0 {shape=$(list(sizes[2:end])), dims=[]}
        %3: $slice = mul %2 %1
        %4: $slice = sin %3
        %5: f64[] = reduce_sum %4 {axes=[0, 1]}
        %6: f64[] = mul 0.01:f64 %5
        %7: f64[] = cos %6
        return %7 %4
      }}
      %5: $(type(sizes[back.+1])) = transpose %4 {perm=$(list(back))}
      $last_line }""", given
end

@testset "read and stacked" for _ in 1:8
    text, sizes = stacks_loop("return %3 %5")
    p = program(text)
    q = JaxprAD.transpose_stacks(p)
    JaxprAD.typecheck(q)
    @test names_in(q) == [:scan]
    x = Any[randn(r, reverse(sizes)...), fill(0.5)]
    @test JaxprAD.evaluate(q, x) ≈ JaxprAD.evaluate(p, x)
    @test native_agrees(text, x...)
end

@testset "a stack that is read as it is too stays" begin
    text, sizes = stacks_loop("return %3 %4 %5")
    q = JaxprAD.transpose_stacks(program(text))
    @test names_in(q) == [:scan, :transpose]
    @test native_agrees(text, randn(r, reverse(sizes)...), fill(0.5))
end

@testset "another axis than that of the trips" begin
    text, sizes = stacks_loop("return %3 %5"; kept = false)
    @test names_in(JaxprAD.transpose_stacks(program(text))) == [:transpose, :scan, :transpose]
    @test native_agrees(text, randn(r, reverse(sizes)...), fill(0.5))
end

@testset "what one loop stacks and another reads" begin
    text = """(%0: f64[5,4,3]) {
      %1: f64[5,4,3] = scan %0 {length=5, reverse=false, consts=0, carry=0, unroll=1,
        body=(%0: f64[4,3]) { %1: f64[4,3] = sin %0 return %1 }}
      %2: f64[5,3,4] = transpose %1 {perm=[0, 2, 1]}
      %3: f64[5,3,4] = scan %2 {length=5, reverse=true, consts=0, carry=0, unroll=1,
        body=(%0: f64[3,4]) { %1: f64[3,4] = exp %0 return %1 }}
      %4: f64[5,4,3] = transpose %3 {perm=[0, 2, 1]}
      %5: f64[5,3,4] = mul %2 %3
      return %4 %5 }"""
    q = JaxprAD.transpose_stacks(program(text))
    JaxprAD.typecheck(q)
    @test names_in(q) == [:scan, :scan, :transpose, :mul]
    @test native_agrees(text, randn(r, 3, 4, 5))
end

@testset "records of numbers that a batch keeps" begin
    text = """(%0: f64[40], %1: f64[40]) {
      %2: f64[40], %3: f64[40], %4: f64[7,40,2] = scan %0 %1 {length=7, reverse=false, consts=0,
        carry=2, unroll=1, body=(%0: f64[40], %1: f64[40]) {
        %2: f64[40] = mul %0 %1
        %3: f64[40] = sin %2
        %4: f64[40,1] = reshape %0 {shape=[40, 1]}
        %5: f64[40,1] = reshape %3 {shape=[40, 1]}
        %6: f64[40,2] = concatenate %4 %5 {dim=1}
        return %3 %2 %6 }}
      %5: f64[7,2,40] = transpose %4 {perm=[0, 2, 1]}
      return %2 %3 %5 }"""
    q = JaxprAD.transpose_stacks(program(text))
    JaxprAD.typecheck(q)
    @test names_in(q) == [:scan]
    @test last(names_in(q.equations[1][:body])) === :concatenate
    @test native_agrees(text, randn(r, 40), randn(r, 40))
end

@testset "transposed twice" begin
    text = """(%0: f64[4,5,3]) {
      %1: f64[5,4,3] = transpose %0 {perm=[1, 0, 2]}
      %2: f64[3,4,5] = transpose %0 {perm=[2, 0, 1]}
      %3: f64[4,3,5] = transpose %2 {perm=[1, 0, 2]}
      %4: f64[4,3] = reduce_sum %3 {axes=[2]}
      %5: f64[4,5,3] = scan %3 {length=4, reverse=false, consts=0, carry=0, unroll=1,
        body=(%0: f64[3,5]) {
        %1: f64[5,3] = transpose %0 {perm=[1, 0]}
        %2: f64[5,3] = sin %1
        return %2 }}
      %6: f64[5,4,3] = transpose %5 {perm=[1, 0, 2]}
      %7: f64[4,3,5] = transpose %6 {perm=[1, 2, 0]}
      return %1 %4 %7 }"""
    q = JaxprAD.transpose_stacks(program(text))
    JaxprAD.typecheck(q)
    @test count(==(:transpose), names_in(q)) == 2       # a result, and of a sum
    @test native_agrees(text, randn(r, 3, 5, 4))
end

@testset "through two loops" begin
    text = """(%0: f64[5,2,4,3], %1: f64[3]) {
      %2: f64[5,2,3,4] = transpose %0 {perm=[0, 1, 3, 2]}
      %3: f64[5,2,3,4] = scan %1 %2 {length=5, reverse=false, consts=1, carry=0, unroll=1,
        body=(%0: f64[3], %1: f64[2,3,4]) {
        %2: f64[2,3,4] = scan %0 %1 {length=2, reverse=false, consts=1, carry=0, unroll=1,
          body=(%0: f64[3], %1: f64[3,4]) {
          %2: f64[3,4] = broadcast_in_dim %0 {shape=[3, 4], dims=[0]}
          %3: f64[3,4] = mul %1 %2
          return %3 }}
        return %2 }}
      %4: f64[5,2,4,3] = transpose %3 {perm=[0, 1, 3, 2]}
      return %4 }"""
    q = JaxprAD.transpose_stacks(program(text))
    JaxprAD.typecheck(q)
    @test names_in(q) == [:scan]
    @test names_in(q.equations[1][:body]) == [:scan]
    @test native_agrees(text, randn(r, 3, 4, 2, 5), randn(r, 3))
end

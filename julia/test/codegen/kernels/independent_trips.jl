# Loops that carry nothing: threads share the trips.

shared(text) = any(d -> occursin("parallel_for", string(d)),
    JaxprAD.kernel_code(program(text))[1])

"`trips` trips of each a loop of `inner` trips, which adds up functions of a slice of `n` numbers."
trips_of(trips, inner, n; reverse = false) = """(%0: f64[$trips,$n], %1: f64[$n]) {
  %2: f64[$trips,$n], %3: f64[$trips] = scan %1 %0 {length=$trips, reverse=$reverse, consts=1,
    carry=0, unroll=1, body=(%0: f64[$n], %1: f64[$n]) {
    %2: f64[$n], %3: f64[$inner,$n] = scan %0 %1 {length=$inner, reverse=false, consts=1, carry=1,
      unroll=1, body=(%0: f64[$n], %1: f64[$n]) {
      %2: f64[$n] = mul %0 %1
      %3: f64[$n] = sin %2
      return %3 %1 }}
    %4: f64[$n] = reduce_sum %3 {axes=[0]}
    %5: f64[$n] = mul %4 %2
    %6: f64[] = reduce_sum %5 {axes=[0]}
    return %4 %6 }}
  return %2 %3 }"""

r = seeded("independent trips")

@testset "$trips trips" for (trips, inner, n) in ((2, 200, 500), (7, 100, 200), (64, 40, 33)),
    reverse in (false, true)

    text = trips_of(trips, inner, n; reverse = reverse)
    @test shared(text)
    for _ in 1:3            # threads take the trips in another order each time
        @test native_agrees(text, rand(r, n, trips), rand(r, n); tolerance = 1e-12)
    end
    @test heap_free(text)
end

@testset "little work, one trip, and what is carried" begin
    @test !shared(trips_of(7, 3, 20))
    @test !shared(trips_of(1, 100, 200))
    carried = """(%0: f64[9,300,300], %1: f64[300,300]) {
      %2: f64[300,300] = scan %1 %0 {length=9, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[300,300], %1: f64[300,300]) { %2: f64[300,300] = mul %0 %1
          %3: f64[300,300] = sin %2 return %3 }}
      return %2 }"""
    p = JaxprAD.prepare_native(program(carried))
    @test !JaxprAD.hasindependent_trips(JaxprAD.Generator(1), p.equations[1])
end

r = seeded("scan")
scan(length, reverse) = """(%0: f64[], %1: f64[2], %2: f64[$length,2]) {
  %3: f64[2], %4: f64[$length], %5: f64[$length,2] = scan %0 %1 %2 {length=$length,
    reverse=$reverse, consts=1, carry=1, unroll=1, body=(%0: f64[], %1: f64[2], %2: f64[2]) {
    %3: f64[] = exp %0
    %4: f64[2] = broadcast_in_dim %3 {shape=[2], dims=[]}
    %5: f64[2] = mul %4 %1
    %6: f64[2] = sin %2
    %7: f64[2] = add %5 %6
    %8: f64[] = reduce_sum %7 {axes=[0]}
    return %7 %8 %6
  }}
  return %3 %4 %5
}"""
function by_hand(c, k, xs; reverse = false)
    n = size(xs, 2)
    totals, sines = zeros(n), zeros(2, n)
    for t in (reverse ? (n:-1:1) : (1:n))
        sines[:, t] = sin.(xs[:, t])
        k = exp(c[]) .* k .+ sines[:, t]
        totals[t] = sum(k)
    end
    k, totals, sines
end
for reverse in (false, true), n in (0, 1, 4)
    check(scan(n, reverse), fill(0.1), randn(r, 2), randn(r, 2, n);
        reference = (c, k, xs) -> by_hand(c, k, xs; reverse = reverse),
        name = "scan of $n, reverse=$reverse")
end

@testset "what depends on constants alone is computed once, before the loop" begin
    known = linearize(program(scan(4, false))).known
    loop = only(e for e in known.equations if name_of(e) === :scan)
    @test :exp in map(name_of, known.equations)
    @test !(:exp in map(name_of, loop[:body].equations))
end

@testset "a carry that nothing uses is dropped" begin
    p = program("""(%0: f64[], %1: f64[]) {
      %2: f64[], %3: f64[] = scan %0 %1 {length=3, reverse=false, consts=0, carry=2, unroll=1,
        body=(%0: f64[], %1: f64[]) {
        %2: f64[] = sin %0
        %3: f64[] = cos %1
        return %2 %3
      }}
      return %3
    }""")
    loop = only(JaxprAD.dce(p).equations)
    @test loop[:carry] == 1 && map(name_of, loop[:body].equations) == [:cos]
end

@test refuses("(%0: f64[2], %1: f64[3]) {
  %2: f64[] = scan %0 %1 {length=3, reverse=false, consts=0, carry=1, unroll=1, body=(%0: f64[2],
  %1: f64[]) { return %0 }} return %2 }")
@test refuses("(%0: f64[], %1: f64[2]) {
  %2: f64[] = scan %0 %1 {length=3, reverse=false, consts=0, carry=1, unroll=1, body=(%0: f64[],
  %1: f64[]) { return %0 }} return %2 }")

@testset "a counter is no residual, whatever it begins at and in which direction" begin
    for reverse in (false, true), (start, step) in ((0, 1), (3, 1), (2, 4))
        counted = """(%0: f64[], %1: f64[5]) {
          %2: i64[], %3: f64[], %4: f64[5] = scan $start:i64 %0 %1 {length=5, reverse=$reverse,
            consts=0, carry=2, unroll=1, body=(%0: i64[], %1: f64[], %2: f64[]) {
            %3: i64[] = add %0 $step:i64
            %4: f64[] = convert_element_type %0 {dtype=f64}
            %5: f64[] = mul %4 %2
            %6: f64[] = add %1 %5
            return %3 %6 %6 }}
          return %3 %4 }"""
        l = linearize(program(counted))
        @test all(in(l.known.inputs), l.known.outputs[3:end])
        trips = start .+ step .* (0:4)
        factors = reverse ? Base.reverse(trips) : trips
        check(counted, fill(0.5), randn(r, 5);
            reference = (c, xs) -> begin
                sums = reverse ? Base.reverse(cumsum(Base.reverse(factors .* xs))) :
                       cumsum(factors .* xs)
                fill(c[] + sum(factors .* xs)), c[] .+ sums
            end,
            name = "a counter from $start by $step, reverse=$reverse")
    end
end

@testset "$T counts $n trips, reverse=$reverse" for (T, n) in (("i8", 127), ("i8", 200),
            ("u8", 300), ("u32", 3), ("i64", 0)), reverse in (false, true)
    check("""(%0: f64[], %1: f64[$n]) {
      %2: $T[], %3: f64[] = scan 1:$T %0 %1 {length=$n, reverse=$reverse, consts=0, carry=2,
        unroll=1, body=(%0: $T[], %1: f64[], %2: f64[]) {
        %3: $T[] = add %0 1:$T
        %4: f64[] = convert_element_type %0 {dtype=f64}
        %5: f64[] = mul %4 %2
        %6: f64[] = add %1 %5
        return %3 %6 }}
      return %3 }""", fill(0.5), randn(r, n) ./ 128)     # sums of small terms round little
end

# while (i, x): i < limit, i += step, x = sin(c * x); the limit is a literal in the
# condition or an operand.
counting(limit; start = 0, step = 1, op = "lt", bound = "none") = """(%0: f64[], %1: f64[]) {
  %2: i32[], %3: f64[] = while %0 $start:i32 %1 {cond_consts=0, body_consts=1, bound=$bound,
    cond=(%0: i32[], %1: f64[]) {
    %2: bool[] = $op %0 $limit:i32
    return %2
  }, body=(%0: f64[], %1: i32[], %2: f64[]) {
    %3: i32[] = add %1 $step:i32
    %4: f64[] = mul %0 %2
    %5: f64[] = sin %4
    return %3 %5
  }}
  return %3
}"""
by_trips(n) = (c, x) -> (foldl((y, _) -> sin(c[] * y), 1:n; init = x[]),)

check(counting(3), fill(1.3), fill(0.7); reference = by_trips(3), name = "three trips")
check(counting(0), fill(1.3), fill(0.7); reference = by_trips(0), name = "no trip")
check(counting(8; start = 1, step = 3, op = "le"), fill(1.3), fill(0.7); reference = by_trips(3),
    name = "i = 1, 4, 7 <= 8")
check(counting(7; start = 1, step = 3, op = "le"), fill(1.3), fill(0.7); reference = by_trips(3),
    name = "i = 1, 4, 7 <= 7")
check(counting(7; start = 1, step = 3), fill(1.3), fill(0.7); reference = by_trips(2),
    name = "i = 1, 4 < 7")

# The trip count is known only at run time: x > 0.1 holds twice for these inputs.
halving(bound) = """(%0: f64[], %1: f64[]) {
  %2: f64[] = while %0 %1 {cond_consts=0, body_consts=1, bound=$bound, cond=(%0: f64[]) {
    %1: bool[] = gt %0 0.3:f64
    return %1
  }, body=(%0: f64[], %1: f64[]) {
    %2: f64[] = mul %0 %1
    return %2
  }}
  %3: f64[] = sin %2
  return %3
}"""
# Reverse mode of a loop whose trips are counted while it runs (rules/while_passes.jl); here a bound
# is not needed, and one that is too small does no harm.
@testset "bound = $bound" for bound in ("none", 5, 1)
    check(halving(bound), fill(0.5), fill(0.9); reference = (c, x) -> (sin(c[]^2 * x[]),),
        name = "two trips")
end

# What decides the trips is known, though its cond is given c with a tangent, and does not use it.
shrinking = """(%0: f64[], %1: f64[]) {
  %2: f64[], %3: f64[] = while %0 1.0:f64 %1 {cond_consts=0, body_consts=1, bound=none,
    cond=(%0: f64[], %1: f64[]) {
    %2: bool[] = gt %0 0.3:f64
    return %2
  }, body=(%0: f64[], %1: f64[], %2: f64[]) {
    %3: bool[] = gt %1 0.6:f64
    %4: i32[] = convert_element_type %3 {dtype=i32}
    %5: f64[] = cond %4 %0 %1 {branches=[(%0: f64[], %1: f64[]) {
      %2: f64[] = mul 0.7:f64 %1
      return %2
    }, (%0: f64[], %1: f64[]) {
      %2: f64[] = mul 0.5:f64 %1
      return %2
    }]}
    %6: f64[] = mul %0 %2
    return %5 %6
  }}
  return %3
}"""
check(shrinking, fill(1.3), fill(0.7); reference = (c, x) -> (c[]^3 * x[],),
    name = "a cond in a loop with an operand that it does not use")

# i < 10 and x > 0.3: five trips for these inputs.
either_ends(bound) = replace(counting(10; bound = bound), "%2: bool[] = lt %0 10:i32" =>
    "%3: bool[] = lt %0 10:i32 %4: bool[] = gt %1 0.3:f64 %2: bool[] = and %3 %4")
check(either_ends("none"), fill(0.8), fill(0.9); reference = by_trips(5),
    name = "a counter, and a number that is carried")

@testset "trip counts" begin
    trips(text) = JaxprAD.trip_count(program(text).equations[1])
    @test trips(counting(10)) == 10
    @test trips(counting(10; step = 0)) === nothing
    @test trips(counting(10; step = -1)) === nothing
    @test trips(counting(-5)) == 0
    @test trips(counting(10; op = "ne")) === nothing
    @test all(trips(f(bound)) === nothing for f in (halving, either_ends) for bound in ("none", 7))
end

@testset "the bound that passes have is the smallest that is known" begin
    bounds(p) = unique(e[:bound] for e in typecheck(p).equations if name_of(e) === :while_passes)
    bound(text) = only(bounds(JaxprAD.vjp(program(text))))
    @test bound(halving("none")) === nothing
    @test bound(halving(7)) == 7
    @test (bound(either_ends("none")), bound(either_ends(12)), bound(either_ends(4))) == (10, 10, 4)
    first_order = JaxprAD.vjp(program(halving(7)))
    for p in (JaxprAD.jvp(first_order), JaxprAD.vjp(first_order), JaxprAD.optimize(first_order))
        @test bounds(p) == [7]
    end
end

@testset "a text without the bound has none" begin
    p = JaxprAD.vjp(program(halving("none")))
    text = JaxprAD.program_text(p)
    before = replace(text, "], bound=none" => "]")
    @test before != text == JaxprAD.program_text(program(before))
end

# while (i, x): i < limit, i += step, x = 2x, with a counter of a type T.
wrapping(T, start, step, limit) = """(%0: f64[]) {
  %1: $T[], %2: f64[] = while $start:$T %0 {cond_consts=0, body_consts=0, bound=none,
    cond=(%0: $T[], %1: f64[]) {
    %2: bool[] = lt %0 $limit:$T
    return %2
  }, body=(%0: $T[], %1: f64[]) {
    %2: $T[] = add %0 $step:$T
    %3: f64[] = mul 1.25:f64 %1
    return %2 %3
  }}
  return %2
}"""
# The counters' values, by integers of Julia that wrap around: -106 follows 100 + 50 of int8.
function counter_steps(::Type{T}, start, step, limit) where {T}
    i, n = T(start), 0
    while i < T(limit)
        i += T(step)
        n += 1
        n < 10^5 || error("the loop does not end")
    end
    n
end

@testset "a counter that wraps around: $T from $start by $step below $limit" for (T, name, start,
    step, limit) in ((Int8, "i8", 0, 50, 120), (Int8, "i8", 0, 100, 120),
    (Int8, "i8", -128, 127, 127), (UInt8, "u8", 10, 255, 20), (UInt8, "u8", 3, 250, 251),
    (Int16, "i16", 0, 20000, 32000), (Int32, "i32", 0, 1500000000, 2000000000))

    n, text = counter_steps(T, start, step, limit), wrapping(name, start, step, limit)
    @test JaxprAD.trip_count(program(text).equations[1]) == n
    check(text, fill(0.7); reference = x -> (1.25^n * x[],), tolerance = 1e-6,
        name = "$name, $n iterations")
end

@testset "a counter whose rounds are too many to follow" begin
    # From one odd number to the next, down: 2^29 rounds of 32 bits.
    p = program(wrapping("u32", 2^30 + 1, 2^32 - 2, 2^30 + 2))
    @test JaxprAD.trip_count(p.equations[1]) === nothing
    # It is below the limit for ever.
    @test JaxprAD.trip_count(program(wrapping("i8", 0, 2, 127)).equations[1]) === nothing
    @test JaxprAD.trip_count(program(wrapping("i8", 0, 64, 127)).equations[1]) === nothing
end

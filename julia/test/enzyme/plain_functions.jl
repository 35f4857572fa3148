# Programs as plain functions, the form that Enzyme differentiates: they compute the same, in memory
# that has one type throughout.

using JaxprAD: ByMemory, ForwardMode, Known, NumberMath, PlainFunction, ReverseMode, allocated,
    bytes, hasderivative, named, partials, plain_function

isempty(methods(partials)) && JaxprAD.define_partials(@__MODULE__)

"The results of a Program's plain function, on scratch memory that is filled with NaN's bits."
function plain_results(p::Program, x; mode = ReverseMode(), plain = plain_function(p, mode))
    y = Any[Array{dtype(a)}(undef, reverse(Int.(JaxprAD.shape(a)))...) for a in p.outputs]
    scratch = fill(0xff, plain.bytes + 1)
    pointers = Any[Ptr{eltype(v)}(pointer(v)) for v in vcat(x, y)]
    spaces = Any[Ptr{T}(pointer(scratch)) for T in plain.scratch]
    GC.@preserve x y scratch Base.invokelatest(plain.f, pointers..., spaces..., C_NULL)
    y
end
function plain_agrees(text, x...)
    p, x = program(text), collect(Any, map(asarray, x))
    before = deepcopy(x)
    expected = run(p, x)
    agree(y) = all(map((a, b) -> eltype(a) === eltype(b) && close(a, b, 1e-12), y, expected))
    together = plain_function(p, ReverseMode(); several = true)
    agree(plain_results(p, x)) && agree(plain_results(p, x; plain = together)) && isequal(x, before)
end
rng = seeded("plain")

@testset "agrees with the evaluator" begin
    @test plain_agrees("(%0: f64[3,4], %1: f64[3,4]) { %2: f64[3,4] = sin %0
      %3: f64[3,4] = mul %2 %1 %4: f64[3] = reduce_sum %3 {axes=[1]} return %3 %4 }",
        randn(rng, 4, 3), randn(rng, 4, 3))
    @test plain_agrees("(%0: f64[], %1: i32[]) { %2: f64[] = exp %0
      %3: i32[] = mul %1 3:i32 return %2 %3 }", 0.4, Int32(7))
    @test plain_agrees("(%0: f64[4,4]) {
      %1: f64[4,4] = dot_general %0 %0 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
      rhs_batch=[], dtype=f64, precision=none} return %1 }",
        randn(rng, 4, 4))
    @test plain_agrees("(%0: i32[], %1: f64[2]) { %2: f64[2] = cond %0 %1 {branches=[(%0: f64[2]) {
      %1: f64[2] = neg %0 return %1 }, (%0: f64[2]) {
      %1: f64[2] = mul %0 %0 return %1 }]} return %2 }",
        Int32(1), randn(rng, 2))
    @test plain_agrees("(%0: f64[], %1: f64[5]) { %2: f64[],
      %3: f64[5] = scan %0 %1 {length=5, reverse=false, consts=0, carry=1, unroll=1,
      body=(%0: f64[], %1: f64[]) { %2: f64[] = tanh %0
      %3: f64[] = add %2 %1 return %3 %2 }} return %2 %3 }",
        0.3, randn(rng, 5))
    # kernels in between: a Fourier transform of complex numbers
    @test plain_agrees("(%0: f64[8]) { %1: f64[8] = square %0
      %2: c128[5] = fft %1 {fft_type=rfft, fft_lengths=[8]} %3: f64[5] = abs %2
      %4: f64[5] = mul %3 2.0:f64 return %4 }",
        randn(rng, 8))
end

@testset "what is called is the user's rules' and not the workspace's" begin
    text =
        "(%0: f64[3]) { %1: f64[3] = mul %0 %0 %2: f64[3] = custom_jvp %1 {call=(%0: f64[3]) {
   %1: f64[3] = sin %0 return %1 }, " *
        "jvp=(%0: f64[3], %1: f64[3]) { %2: f64[3] = sin %0 return %2 %1 }} return %2 }"
    @test plain_function(program(text), ReverseMode()).opaque
    @test plain_agrees(text, randn(rng, 3))
    @test !plain_function(program("(%0: f64[3]) {
      %1: f64[3] = sin %0 return %1 }"), ReverseMode()).opaque
end

# ---- numbers' functions with rules

slope(f, x, h) = (f(x + h) - f(x - h)) / 2h
const POINTS = Dict(NumberMath.acosh => [1.3, 4.0], NumberMath.log => [0.2, 3.0],
    NumberMath.log2 => [0.2, 3.0], NumberMath.sqrt => [0.2, 3.0],
    NumberMath.rsqrt => [0.2, 3.0],
    NumberMath.log1p => [-0.4, 3.0])
points(f) = get(POINTS, f, [-0.7, 0.3, 0.9])
"The functions that have methods of `partials`, and how many numbers they take."
const KNOWN = unique((m.sig.parameters[2].instance, length(m.sig.parameters) - 2)
       for m in methods(partials))

@testset "derivatives of numbers' functions" begin
    @test length(KNOWN) > 30
    @testset "$f" for f in [f for (f, n) in KNOWN if n == 1], x in points(f)
        @test hasderivative(f) && named(f, Known) isa Known
        @test partials(f, x)[1] ≈ slope(f, x, 1e-5) rtol = 1e-7
        @test partials(f, Float32(x))[1] isa Float32
    end
    @testset "$f of two" for f in [f for (f, n) in KNOWN if n == 2],
        (x, y) in ((0.7, 1.9), (2.5, 0.4))

        dx, dy = partials(f, x, y)
        @test dx ≈ slope(v -> f(v, y), x, 1e-5) rtol = 1e-7 atol = 1e-9
        @test dy ≈ slope(v -> f(x, v), y, 1e-5) rtol = 1e-7 atol = 1e-9
        @test all(d -> d isa Float32, partials(f, Float32(x), Float32(y)))
    end
    @test partials(NumberMath.asinh, 1e200)[1] ≈ 1e-200 &&
          partials(NumberMath.acosh, 1e200)[1] ≈ 1e-200
    @test all(partials(NumberMath.atan2, 1e-200, 1e-200) .≈ (5e199, -5e199)) &&
          all(partials(NumberMath.atan2, 1e200, 1e200) .≈ (5e-201, -5e-201))
    @test partials(JaxprAD.power, -1.5, 3) === (3 * 1.5^2, 0.0)
    @test partials(JaxprAD.power, 2.0, Int32(0)) === (0.0, 0.0)
    @test partials(JaxprAD.power, 2.0, 0.0)[1] === 0.0
    @test partials(JaxprAD.larger, 2.0, 2.0) === partials(JaxprAD.smaller, 2.0, 2.0) === (0.5, 0.5)
    @test partials(JaxprAD.larger, 2.0, 1.0) === (1.0, 0.0)
end

@testset "names" begin
    @test !hasderivative(+) && named(:(x + 1), Known) == :(x + 1)
    ex = named(:($(NumberMath.sin)(x) + $(+)(x, 1)), Known)
    @test ex.args[2].args[1] === Known(NumberMath.sin) && ex.args[3].args[1] === +
    @test Known(NumberMath.sin)(0.3) === NumberMath.sin(0.3)
    places = [1.0f0], [1.0]
    GC.@preserve places begin
        f = ByMemory(NumberMath.sin, map(pointer, places))
        @test f(0.3) === places[2][1] ≈ sin(0.3)
        @test f(0.3f0) === places[1][1] ≈ sin(0.3f0)
        @test ByMemory(JaxprAD.larger, map(pointer, places))(Int32(2), Int32(3)) === Int32(3)
    end
end

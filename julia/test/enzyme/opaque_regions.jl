# Which parts of a Program Enzyme is not asked to look into, and that these parts' derivatives are
# those of the transforms.

using JaxprAD: ForwardMode, RegionKernels, OpaqueRegion, ReverseMode, bodies, call_native, isopaque,
    partials, region_derivative, opaque_regions, uses_after

isempty(methods(partials)) && JaxprAD.define_partials(@__MODULE__)

equation(text) = program(text).equations[end]
opaque(text) = (e = equation(text); isopaque(e.op, e))
one_line(op, type, attrs = "", x = "%0") = "(%0: $type) { %1: $type = $op $x $attrs return %1 }"

@testset "what is Enzyme's and what a kernel's" begin
    for op in ("neg", "sin", "exp", "square"), type in ("f64[3]", "f32[]")
        @test !opaque(one_line(op, type))
    end
    @test opaque(one_line("sin", "f64[1025]")) && !opaque(one_line("sin", "f64[1024]"))
    @test !opaque(one_line("lgamma", "f64[3]")) &&
          opaque(one_line("cumsum", "f64[3]", "{axis=0, reverse=false}"))
    @test opaque(one_line("neg", "c128[3]")) && opaque(one_line("neg", "bf16[3]"))
    @test opaque(one_line("stop_gradient", "f64[3]"))
    @test opaque(one_line("sort", "f64[3]", "{dim=0, stable=true, num_keys=1}"))
    @test !opaque(one_line("rev", "f64[3]", "{dims=[0]}")) &&
          opaque(one_line("rev", "f64[2000]", "{dims=[0]}"))
    @test !opaque("(%0: f64[]) { %1: f64[] = scan %0 {length=5, reverse=false, consts=0, carry=1,
      unroll=1, body=(%0: f64[]) { %1: f64[] = sin %0 return %1 }} return %1 }")
end

@testset "runs of kernels' equations are one part" begin
    p = program("(%0: f64[4], %1: f64[4]) { %2: f64[4] = sin %0
      %3: f64[4] = cumsum %2 {axis=0, reverse=false} %4: f64[4] = cumsum %3 {axis=0, reverse=false}
      %5: f64[4] = cumsum %1 {axis=0, reverse=false} %6: f64[4] = mul %4 %5 return %6 }")
    q = opaque_regions(p, ReverseMode(), [true, false])
    @test [e.op isa OpaqueRegion for e in q.equations] == [false, true, false]
    part = q.equations[2]
    @test length(part.inputs) == 2 && length(part.outputs) == 2            # %3 is not read later
    kernels = part[:kernels]
    @test kernels isa RegionKernels{ReverseMode,2,2}
    @test sort(collect(kernels.active)) == [false, true]                       # %1 is constant
    @test kernels.operands == kernels.results == (32, 32)
    @test kernels.derivative.pointer != C_NULL
    constant = opaque_regions(p, ReverseMode(), [false, false]).equations[2][:kernels]
    @test constant.derivative.pointer == C_NULL
end

@testset "in bodies too" begin
    p = program("(%0: f64[2]) { %1: f64[2] = scan %0 {length=3, reverse=false, consts=0, carry=1,
      unroll=1, body=(%0: f64[2]) { %1: f64[2] = cumsum %0 {axis=0, reverse=false} return
      %1 }} return %1 }")
    q = opaque_regions(p, ForwardMode(), [true])
    @test q.equations[1].op isa JaxprAD.Scan && JaxprAD.holds_opaque_regions(q) &&
          !JaxprAD.holds_opaque_regions(p)
    @test only(bodies(q.equations[1])).equations[1][:kernels] isa RegionKernels{ForwardMode,1,1}
end

@testset "what is read later" begin
    p = program("(%0: f64[]) { %1: f64[] = sin %0 %2: f64[] = cos %1
      %3: f64[] = mul %2 %0 return %3 }")
    x, (a, b, c) = p.inputs[1], [e.outputs[1] for e in p.equations]
    @test uses_after(p) ==
          [Set([x, a, b, c]), Set([x, a, b, c]), Set([x, b, c]), Set([c])] .|>
          s ->
        JaxprAD.VarSet(s)
end

rng = seeded("linked")
addresses(arrays) = Tuple(Ptr{Cvoid}(pointer(a)) for a in arrays)

@testset "derivatives" begin
    p = program("(%0: f64[3], %1: f64[3]) { %2: f64[3] = lgamma %0
      %3: f64[3] = mul %2 %1 return %3 }")
    x, ẋ, ȳ = [rand(rng, 3) .+ 1, randn(rng, 3)], randn(rng, 3), randn(rng, 3)
    y, ẏ = zeros(3), zeros(3)
    forward = RegionKernels(p, ForwardMode(), [true, false])
    GC.@preserve x ẋ y ẏ begin
        call_native(forward.value, C_NULL, addresses(x), addresses((y,)))
        call_native(forward.derivative, C_NULL, addresses((x..., ẋ)), addresses((ẏ,)))
    end
    expected = run(jvp(p, [true, false]), Any[x..., ẋ])
    @test y ≈ expected[1] && ẏ ≈ expected[2]

    # in reverse what is there is added to
    reverse = RegionKernels(p, ReverseMode(), [true, true])
    sums = [randn(rng, 3), randn(rng, 3)]
    before = deepcopy(sums)
    GC.@preserve x ȳ sums call_native(reverse.derivative, C_NULL, addresses((x..., ȳ, sums...)),
        addresses(sums))
    @test all(map((s, b, v) -> s ≈ b + v, sums, before, run(vjp(p), Any[x..., ȳ])))
end

@testset "complex cotangents are Enzyme's conjugates" begin
    p = program("(%0: c128[2], %1: c128[2]) { %2: c128[2] = mul %0 %1 return %2 }")
    x, ȳ = [randn(rng, ComplexF64, 2) for _ in 1:2], randn(rng, ComplexF64, 2)
    zero_ = zeros(ComplexF64, 2)
    q = region_derivative(p, ReverseMode(), [true, true])
    found = run(q, Any[x..., ȳ, zero_, zero_])
    @test found[1] ≈ ȳ .* conj.(x[2]) && found[2] ≈ ȳ .* conj.(x[1])
end

@testset "forward mode of a rule that is for reverse alone" begin
    p = program("(%0: f64[]) { %1: f64[] = custom_vjp %0 {call=(%0: f64[]) {
      %1: f64[] = sin %0 return %1 }, fwd=(%0: f64[]) {
      %1: f64[] = sin %0 return %1 %0 }, bwd=(%0: f64[], %1: f64[]) {
      %2: f64[] = mul %0 %1 return %2 }} return %1 }")
    @test_throws JaxprAD.NotDifferentiable region_derivative(p, ForwardMode(), [true])
    @test run(region_derivative(p, ReverseMode(), [true]), Any[fill(3.0), fill(2.0), fill(1.0)]) ==
          [fill(7.0)]
end

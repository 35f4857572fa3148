# What loops keep for their derivatives: the fewest bytes, numbers in records.

loop(p) = only(e for e in p.equations if name_of(e) === :scan)
"The bytes that a linearized loop over n trips keeps of each, apart from constants and slices."
function kept_bytes(text, n)
    l = linearize(program(text))
    loops = [e for e in l.known.equations if name_of(e) === :scan]
    results = VarSet(v for e in loops for v in e.outputs[e[:carry]+1:end])
    sum(
        Int[JaxprAD.bytes(aval(a))
            for a in l.known.outputs[end-l.residuals+1:end] if a in results]
    ) ÷ n
end
const VarSet = JaxprAD.VarSet
scan_of(body, n = 7) =
    "(%0: f64[], %1: f64[], %2: f64[$n]) { %3: f64[],
%4: f64[$n] = scan %0 %1 %2 {length=$n, reverse=false, consts=1, " *
    "carry=1, unroll=1, body=(%0: f64[], %1: f64[],
      %2: f64[]) { $body }} return %3 %4 }"

@testset "what is cheap to compute again is not kept where that takes fewer bytes" begin
    # c·x² + x³: both derivatives come from the carry and the constant.
    cubic = scan_of("%3: f64[] = mul %1 %1 %4: f64[] = mul %0 %3 %5: f64[] = mul %3 %1
      %6: f64[] = add %4 %5 %7: f64[] = mul 0.1:f64 %6 return %7 %3")
    @test kept_bytes(cubic, 7) == 8
    # An exponential is kept, and not its many multiples.
    @test kept_bytes(scan_of("%3: f64[] = exp %1 %4: f64[] = mul 2.0:f64 %3 %5: f64[] = mul %3 %3
      %6: f64[] = mul %5 %0 %7: f64[] = div %6 9.0:f64 return %7 %4"), 7) == 8
    # Of a slice and a constant nothing is.
    @test kept_bytes(scan_of("%3: f64[] = mul %2 %0 %4: f64[] = mul %1 %3 return %4 %3"), 7) == 8
    @test kept_bytes(scan_of("%3: f64[] = mul %2 %2 %4: f64[] = mul %3 %1 return %4 %3"), 7) == 8
end

"Random bodies of a loop over two numbers, with what is cheap and what is expensive."
function random_body(r)
    lines, values, k = String[], ["%0", "%1", "%2"], 2
    for _ in 1:rand(r, 3:20)
        a, b = rand(r, values), rand(r, values)
        ex =
            rand(
                r,
                ["mul $a $b", "add $a $b", "sub $a $b", "sin $a", "exp $(a)", "mul 0.3:f64 $a",
                    "tanh $a", "neg $a", "div $a 3.0:f64"]
            )
        push!(lines, "%$(k += 1): f64[] = $ex %$(k + 1): f64[] = tanh %$k")
        push!(values, "%$(k += 1)")
    end
    join(lines, "\n") * " return %$k $(rand(r, values))"
end

"The bytes of the least cut, found by trying every set of values."
function least_by_trial(p, needed, free)
    values = [v for e in p.equations for v in e.outputs]
    candidates = vcat(p.inputs, values)
    producer = IdDict(v => e for e in p.equations for v in e.outputs)
    suffices(cut) = all(v -> reached(v, cut), needed)
    reached(v, cut) =
        v in cut || v in free ||
        haskey(producer, v) &&
        JaxprAD.ischeaply_repeated(producer[v]) &&
        all(a -> !(a isa JaxprAD.Var) ||
                reached(a, cut), producer[v].inputs)
    minimum(
        8count(isodd, bits)
        for bits in (digits(k, base = 2, pad = length(candidates))
                 for k in 0:2^length(candidates)-1)
        if suffices(VarSet(v for (v, b) in zip(candidates, bits) if b == 1))
    )
end

@testset "the cut is the least" begin
    r, compared = seeded("least cut"), 0
    for _ in 1:60
        lines, values = String[], ["%0", "%1", "%2"]
        for k in 3:8
            a, b = rand(r, values), rand(r, values)
            push!(
                lines,
                "%$k: f64[] = " * rand(r, ["mul $a $b", "add $a $b", "sub $a $b", "sin $a",
                    "neg $a"])
            )
            push!(values, "%$k")
        end
        p = program("(%0: f64[], %1: f64[],
          %2: f64[]) { $(join(lines, " ")) return %8 %7 %$(rand(r, 3:6)) }")
        needed, free = JaxprAD.Var[a for a in unique(p.outputs)], VarSet(p.inputs[1:1])
        cut = JaxprAD.least_cut(p, needed, [v in free ? 0 : nothing for v in p.inputs])
        @test sum(Int[8 for v in cut if !(v in free)]) == least_by_trial(p, needed, free)
        compared += length(cut)
    end
    @test compared > 60
end

@testset "random loops: linear parts and gradients agree with differences" begin
    r = seeded("random loops")
    for _ in 1:30
        p = program(scan_of(random_body(r)))
        x, ẋ = (Any[fill(0.3randn(r)), fill(0.3randn(r)), randn(r, 7)],
            Any[fill(randn(r)), fill(randn(r)), randn(r, 7)])
        l = linearize(p)
        @test wellformed(l.known) && wellformed(l.linear)
        known = run(l.known, x)
        expected = run(JaxprAD.jvp(p), vcat(x, ẋ))[3:4]
        @test relative_error(run(l.linear, vcat(known[3:end], ẋ)), expected) < 1e-12
        ȳ = Any[fill(randn(r)), randn(r, 7)]
        x̄ = run(JaxprAD.vjp(p), vcat(x, ȳ))
        @test isapprox(sum(sum(a .* t) for (a, t) in zip(x̄, ẋ)),
            sum(sum(a .* t) for (a, t) in zip(ȳ, expected)); rtol = 1e-9, atol = 1e-11)
    end
end

@testset "kept numbers lie in one record a trip, those computed alike next to each other" begin
    body = "%3: f64[] = sin %1 %4: f64[] = exp %2 %5: f64[] = sin %4 %6: f64[] = exp %3
      %7: f64[] = mul %5 %6 %8: f64[] = mul %7 %0 return %8 %7"
    l = linearize(program(scan_of(body)))
    early = loop(l.known)
    record = only(e for e in early[:body].equations if name_of(e) === :concatenate)
    @test ndims(aval(early.outputs[end])) == 2 &&
          aval(early.outputs[end]).shape[2] == length(record.inputs) > 2
    producer = Dict(v => e for e in early[:body].equations for v in e.outputs)
    made_by(a) = (e = get(producer, a, nothing); e === nothing ? :input : name_of(e))
    kinds = [made_by(producer[a].inputs[1]) for a in record.inputs]
    # Each kind is one stretch.
    @test count(i -> i == 1 || kinds[i] !== kinds[i-1], eachindex(kinds)) == length(unique(kinds))
    @test !any(e -> name_of(e) === :scan && e[:reverse] == false,
        JaxprAD.transpose(l.linear, vcat(falses(l.residuals), trues(3))).equations)
end

@testset "what a body gives twice is stacked once" begin
    p = program("""(%0: f64[3]) { %1: f64[], %2: f64[3],
      %3: f64[3] = scan 0.0:f64 %0 {length=3, reverse=false, consts=0, carry=1, unroll=1,
      body=(%0: f64[], %1: f64[]) { %2: f64[] = add %0 %1 %3: f64[] = sin %2
        %4: f64[] = sin %2 return %2 %3 %4 }} %4: f64[3] = add %2 %3 return %4 %3 %1 }""")
    q = optimize(p)
    @test length(loop(q).outputs) == 2 && wellformed(q)
    x = Any[[1.0, 2.0, 3.0]]
    @test run(q, x) == run(p, x)
end

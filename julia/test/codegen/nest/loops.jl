# Loop nests: padded arrays read outside of their edges, and short rows.

r = seeded("loops")
using InteractiveUtils: code_llvm

"LLVM's text of the last function of a kernel."
function optimized(p)
    f = Core.eval(JaxprAD.Kernels, JaxprAD.kernel_code(p)[1][end])
    sprint(io -> code_llvm(io, f, Tuple{fieldtypes(first(methods(f)).sig)[2:end]...}))
end
# Without optimisation there are no vectors.
stores_vectors(text, element) =
    occursin(Regex("store <\\d+ x $element>"), text) || Base.JLOptions().opt_level < 2

"""
The gradient of the sum of squared differences along every axis: an array of which each element
reads its neighbours, where there are any."""
function neighbours(n::Vector{Int}, T = "f64")
    list(x) = "[" * join(x, ", ") * "]"
    type(x) = "$T[" * join(x, ",") * "]"
    none, ones_, lines, k = zeros(Int, length(n)), ones(Int, length(n)), String[], 0
    add(type_, ex) = (push!(lines, "%$(k += 1): $type_ = $ex"); "%$k")
    sum_ = "%0"
    for (axis, m) in enumerate(n)
        step = [i == axis ? 1 : 0 for i in eachindex(n)]
        shorter = max.(n .- step, 0)
        after = add(
            type(shorter),
            "slice %0 {start=$(list(min.(step, n))), limit=$(list(n)),
strides=$(list(ones_))}"
        )
        before = add(
            type(shorter),
            "slice %0 {start=$(list(none)), limit=$(list(shorter)),
strides=$(list(ones_))}"
        )
        d = add(type(shorter), "sub $after $before")
        for (low, high, op) in ((none, n .- shorter, "sub"), (n .- shorter, none, "add"))
            padded = add(type(n),
                "pad $d 0.0:$T {low=$(list(low)), high=$(list(high)), interior=$(list(none))}")
            sum_ = add(type(n), "$op $sum_ $padded")
        end
    end
    "(%0: $(type(n))) { $(join(lines, "\n")) return $sum_ }"
end

"f of the array where it lies between others of NaN, so that one sees what is read beyond its ends."
function among_nans(f, x::Array)
    n, memory = length(x), fill(eltype(x)(NaN), 3 * length(x))
    copyto!(memory, n + 1, x, 1, n)
    GC.@preserve memory f(unsafe_wrap(Array, pointer(memory, n + 1), size(x)))
end

@testset "a padded array in another, $low and $more rows before each" for (low, more) in
                                                                          ((1, 1), (1, 0), (0, 2),
    (-1, 2), (0, 0))
    pads = "(%0: f64[7,16]) {
        %1: f64[8,16] = pad %0 0.0:f64 {low=[$low, 0], high=[$(1 - low), 0], interior=[0, 0]}
        %2: f64[10,16] = pad %1 0.0:f64 {low=[$more, 0], high=[$(2 - more), 0], interior=[0, 0]}
        return %2 }"
    @test among_nans(x -> native_agrees(pads, x), randn(r, 16, 7))
end

@testset "neighbours in an array of $n" for n in
                                            ([5], [2, 7], [1, 4], [3, 1], [4, 5, 6], [2, 2, 2],
    [3, 4, 3, 5], [40, 30, 33])
    @test native_agrees(neighbours(n), randn(r, Tuple(reverse(n))))
    @test heap_free(neighbours(n))
end

@testset "rows away from the edges are free of conditions" begin
    p = program(neighbours([4, 5, 6]))
    s = JaxprAD.Frame(JaxprAD.Generator(1), JaxprAD.plan(p))
    for (k, e) in enumerate(p.equations), v in e.outputs
        s.storages[v] = JaxprAD.Virtual(e, 1)
    end
    s.storages[p.inputs[1]] = JaxprAD.Memory(:x, aval(p.inputs[1]), false)
    parts = JaxprAD.built_parts(s, [4, 5, 6],
        [JaxprAD.whole_store(JaxprAD.Memory(:y, aval(p.outputs[1]), true), p.outputs[1])], [],
        IdDict{JaxprAD.Var,JaxprAD.Equation}())
    @test map(part -> part.inner, parts) == [0:0, 1:4, 5:5]
    asks(part) =
        any(st -> st isa JaxprAD.Apply && st.f === JaxprAD.within_bounds,
            [st for (_, st, _) in part.steps])
    @test asks(parts[2]) && !asks(parts[2].interior)
    @test length(parts[2].edges) == 4
end

"Differences along short rows, kept and summed along both axes."
short_rows(n, T = "f64") = """(%0: $T[6,$n], %1: $T[5,$n]) {
  %2: $T[6,5,$n] = broadcast_in_dim %0 {shape=[6, 5, $n], dims=[0, 2]}
  %3: $T[6,5,$n] = broadcast_in_dim %1 {shape=[6, 5, $n], dims=[1, 2]}
  %4: $T[6,5,$n] = sub %2 %3
  %5: $T[6,5] = reduce_sum %4 {axes=[2]}
  %6: $T[6,$n] = reduce_max %4 {axes=[1]}
  %7: $T[6,5,$n] = sin %4
  return %4 %5 %6 %7
}"""

@testset "rows of $n numbers" for n in (2, 3, 4, 7, 10, 31, 63, 64, 100, 191)
    @test native_agrees(short_rows(n), randn(r, n, 6), randn(r, n, 5))
    @test native_agrees(short_rows(n, "f32"), randn(r, Float32, n, 6), randn(r, Float32, n, 5))
end

@testset "rows that a loop passes many times" for n in (4, 33, 100, 127)
    text = """(%0: f64[$n], %1: f64[$n]) {
      %2: f64[$n], %3: f64[9,$n] = scan %1 %0 {length=9, reverse=false, consts=1, carry=1,
        unroll=1, body=(%1: f64[$n], %0: f64[$n]) {
        %2: f64[$n] = mul %0 %1
        %3: f64[$n] = sin %2
        %4: f64[$n] = add %2 %1
        return %3 %4 }}
      return %2 %3 }"""
    @test native_agrees(text, randn(r, n), randn(r, n))
end

part(steps...) = JaxprAD.RowPart(0:9, collect(steps), [], [])
sums(op) =
    IdDict(
        JaxprAD.Reduce(JaxprAD.Literal(0.0), JaxprAD.primitive(op), Float64, [true], nothing,
            JaxprAD.Affine(1), :t) => :s
    )
applied(g, T) = (:v, JaxprAD.Apply(g, [:u]), T)

@testset "what is left of a row after whole vectors goes in powers of two" begin
    lengths(from, to, T; sums = none, alone = false) =
        JaxprAD.row_stretches(from, to, part(applied(-, T)), sums, alone)
    none = typeof(sums(:reduce_sum))()
    @test lengths(0, 10, Float64) == lengths(0, 10, Float64; sums = sums(:reduce_sum)) == [8, 2]
    @test lengths(3, 3 + 63, Float32) == [32, 16, 8, 4, 2, 1]
    @test lengths(0, 100, Float64) == lengths(0, 100, Float64; alone = true) == [96, 4]
    @test lengths(0, 100, Float32) == [64, 32, 4]
    @test lengths(0, 64, Float64) == [64]
    @test lengths(0, 4, Float64) == [4]
    functions = part(applied(JaxprAD.NumberMath.exp, Float64))
    @test JaxprAD.row_stretches(0, 28, functions, none, true) == [16, 8, 4]
    @test lengths(0, 3, Float64) == lengths(:a, 10, Float64) == lengths(0, 4097, Float64) ==
          lengths(0, 7, Float64; sums = sums(:reduce_max)) ==
          lengths(0, 100, Float64; sums = sums(:reduce_sum)) ==
          lengths(0, 10, Float64; alone = true) == []
end

@testset "from how many elements on" begin
    least(steps, op...) =
        JaxprAD.least_row(part(steps...), isempty(op) ? typeof(sums(:reduce_sum))() : sums(op...))
    @test least([applied(-, Float32)]) == least([applied(-, Float32)], :reduce_sum) == 4
    @test least([applied(-, Float64)], :reduce_max) == 8
    checked = JaxprAD.NumberMath.near(JaxprAD.NumberMath.sin, Float64)[1]
    @test least([applied(checked, Float64), applied(-, Float64)]) == 4
    wide = JaxprAD.Widened(JaxprAD.NumberMath.exp)
    for (g, T) in ((JaxprAD.NumberMath.sin, Float64), (wide, JaxprAD.BFloat16))
        @test least([applied(g, T), applied(-, T)]) == 8
        @test least([applied(g, T)], :reduce_sum) == 4
    end
end

@testset "short rows are stored by vectors" begin
    p = program("""(%0: f64[6,10], %1: f64[5,10]) {
        %2: f64[6,5,10] = broadcast_in_dim %0 {shape=[6, 5, 10], dims=[0, 2]}
        %3: f64[6,5,10] = broadcast_in_dim %1 {shape=[6, 5, 10], dims=[1, 2]}
        %4: f64[6,5,10] = sub %2 %3
        return %4
    }""")
    text = optimized(p)
    @test stores_vectors(text, "double") && !occursin("scatter", text)
end

@testset "loops on complex numbers are vectors, $name" for (name, take, result) in (
    ("exp", "%0", "c64"), ("abs", "%0", "f32"), ("div", "%0 %1", "c64"))
    text = "(%0: c64[400], %1: c64[400]) { %2: $result[400] = $name $take return %2 }"
    @test stores_vectors(optimized(program(text)), "float")
    x, y = randn(r, ComplexF32, 400), randn(r, ComplexF32, 400)
    @test native_agrees(text, x, y)
    # One is so large that its quadrant takes more digits of π, or its square is infinite.
    for (k, huge) in ((1, 2.0f0^30 * im), (400, complex(-1.0f0, 3.0f37)),
        (200, complex(Inf32, 1.0f0)))
        z = copy(x)
        z[k] = huge
        @test native_agrees(text, z, y)
    end
end

@testset "the loops run along what is largest" begin
    # A matrix, a number for each of its rows, and the sums of the rows.
    along(a...) = JaxprAD.Affine(collect(Int, a), 0, [])
    function order(matrix)
        loads = [JaxprAD.Load(:x, matrix), JaxprAD.Load(:m, along(1, 0))]
        rows = JaxprAD.Reduce(JaxprAD.Literal(0.0), JaxprAD.ReduceSum(), Float64, [false, true],
            :y, along(1, 0), :total)
        part = JaxprAD.RowPart(0:49, [(Symbol(:v, k), l, Float64) for (k, l) in enumerate(loads)],
            [], [:v1])
        first(JaxprAD.in_memory_order([30, 50], [part], JaxprAD.Store[], [rows]))
    end
    @test order(along(50, 1)) == [30, 50]
    @test order(along(1, 30)) == [50, 30]
end

@testset "functions for arguments of any extent, that are called: $name" for (name, text, Ts) in
                                                                            FAR_FUNCTIONS
    @test occursin("_called", string(JaxprAD.kernel_code(program(text))[1]))
    x, y = (randn(r, T, 37) for T in Ts)
    @test native_agrees(text, x, y)
    for k in (1, 36, 37), huge in (3.0f5, 2.0f12)
        far = copy(x)
        far[k] = eltype(x) <: Complex ? huge * im : eltype(x)(huge)^3
        @test native_agrees(text, far, y)
    end
end

@testset "remainders of small quotients are vectors: $T" for T in (Float32, Float64)
    t = T === Float32 ? "f32" : "f64"
    text = "(%0: $t[40], %1: $t[]) { %2: $t[40] = broadcast_in_dim %1 {shape=[40], dims=[]}
      %3: $t[40] = rem %0 %2 return %3 }"
    # The sign is given to bits.
    @test stores_vectors(optimized(program(text)), T === Float32 ? "i32" : "i64")
    x = randn(r, T, 40)
    for y in T[0.3, -2, 0, Inf, NaN, 1e-30], far in T[1, Inf, NaN, 3e15]
        x[7] = far
        @test native_agrees(text, x, fill(y))
    end
    number = "(%0: $t[], %1: $t[]) { %2: $t[] = rem %0 %1 return %2 }"
    @test all(native_agrees(number, fill(a), fill(b)) for a in T[7, -1e20], b in T[2, 0, 1e-3])
end

@testset "few are vectors for arguments of any extent, too" begin
    p = program("(%0: f64[40]) { %1: f64[40] = sin %0 %2: f64[40] = cos %1 return %1 %2 }")
    @test !occursin("_called", string(JaxprAD.kernel_code(p)[1]))
end

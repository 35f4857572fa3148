# What is the same along some axes is moved, summed and multiplied without them.

names_of(p) = map(name_of, p.equations)
optimized(text) = typecheck(JaxprAD.optimize(program(text)))
"The optimised Program, which gives what the Program gives, natively too."
function same_optimized(text, x)
    p = optimized(text)
    @test relative_error(run(p, x), run(program(text), x)) < 1e-13
    NATIVE && @test native_agrees(p, x)
    p
end

@testset "what is the same along an axis is not summed along it" begin
    rng = seeded("sums of repeated")
    product(axes, out, more = "") = """(%0: f64[6], %1: f64[], %2: f64[6,8]) {
      %3: f64[6,8] = broadcast_in_dim %0 {shape=[6, 8], dims=[0]}
      %4: f64[6,8] = broadcast_in_dim %1 {shape=[6, 8], dims=[]}
      %5: f64[6,8] = mul %3 %4
      %6: f64[6,8] = mul 1.5:f64 %5
      $more
      %7: $out = reduce_sum %6 {axes=$axes}
      return %7
    }"""
    x = Any[randn(rng, 6), fill(0.3), randn(rng, 8, 6)]
    for (axes, out) in ("[0]" => "f64[8]", "[1]" => "f64[6]", "[0, 1]" => "f64[]")
        p = optimized(product(axes, out))
        elementwise = [e for e in p.equations if name_of(e) in (:mul, :reduce_sum)]
        @test all(e -> ndims(JaxprAD.aval(e.inputs[1])) <= 1, elementwise)
        @test relative_error(run(p, x), run(program(product(axes, out)), x)) < 1e-14
        check(product(axes, out), x...)
    end
    varying = replace(product("[0]", "f64[8]"), "mul 1.5:f64 %5" => "mul %2 %5")
    @test ndims(JaxprAD.aval(only(e for e in optimized(varying).equations
                                  if name_of(e) === :reduce_sum).inputs[1])) == 2
    # 8-bit and 16-bit numbers cannot hold every count, and sums of integers wrap.
    @test names_of(optimized("""(%0: f16[]) { %1: f16[70000] = broadcast_in_dim %0 {shape=[70000],
      dims=[]} %2: f16[] = reduce_sum %1 {axes=[0]} return %2 }""")) ==
          [:broadcast_in_dim, :reduce_sum]
end

@testset "an array filled with a number gives one where its elements are moved" begin
    for (out, move) in ("f64[2,3]" => "slice %1 {start=[1, 0], limit=[3, 3], strides=[1, 1]}",
        "f64[3,5]" => "transpose %1 {perm=[1, 0]}", "f64[15]" => "reshape %1 {shape=[15]}",
        "f64[5,3]" => "rev %1 {dims=[0]}",
        "f64[2,2]" => "dynamic_slice %1 4:i32 1:i32 {sizes=[2, 2]}")
        p = same_optimized("""(%0: f64[]) {
          %1: f64[5,3] = broadcast_in_dim %0 {shape=[5, 3], dims=[]}
          %2: $out = $move
          return %2 }""", Any[fill(0.7)])
        @test names_of(p) == [:broadcast_in_dim]
    end
    for operation in ("mul %1 2.0:f64", "add %1 1.0:f64", "mul %1 %1")
        p = same_optimized("""(%0: f64[]) {
          %1: f64[5,3] = broadcast_in_dim %0 {shape=[5, 3], dims=[]}
          %2: f64[5,3] = $operation
          return %2 }""", Any[fill(0.7)])
        @test ndims(JaxprAD.aval(p.equations[1].outputs[1])) == 0
    end
    p = optimized("""(%0: f64[]) { %1: f64[1,1] = broadcast_in_dim %0 {shape=[1, 1], dims=[]}
      %2: f64[] = squeeze %1 {dims=[0, 1]} return %2 }""")
    @test p.outputs[1] === p.inputs[1]
end

@testset "a broadcast whose axes change places is one" begin
    for (dims, perm, out, isone) in (([0], [1, 0, 2], "f64[4,5,3]", true),
        ([0, 2], [0, 2, 1], "f64[5,3,4]", true), ([0, 2], [2, 1, 0], "f64[3,4,5]", false))
        operand, x = length(dims) == 1 ? ("f64[5]", randn(5)) : ("f64[5,3]", randn(3, 5))
        p = same_optimized("""(%0: $operand) {
          %1: f64[5,4,3] = broadcast_in_dim %0 {shape=[5, 4, 3], dims=$dims}
          %2: $out = transpose %1 {perm=$perm}
          return %2 }""", Any[x])
        @test (names_of(p) == [:broadcast_in_dim]) == isone
    end
end

multiplied(k, x::Integer) = (k * Int(x)) % typeof(x)
multiplied(k, x::Union{Float64,ComplexF32}) = k * x
multiplied(k, x) = typeof(x)(k * Float32(x))

@testset "running sums of one number are its multiples: $T, reverse=$reverse" for T in
                                                                                   ("f64", "f32",
        "bf16", "f16", "i8", "c64"),
    reverse in (false, true)

    sums(x) = """(%9: $T[]) { %0: $T[2,300] = broadcast_in_dim $x {shape=[2, 300], dims=[]}
      %1: $T[2,300] = cumsum %0 {axis=1, reverse=$reverse} return %1 }"""
    type, order = JaxprAD.dtype_named(Symbol(T)), reverse ? (300:-1:1) : (1:300)
    for value in (type(1), T == "i8" ? Int8(-3) : type(-0.7))
        one = T == "i8" ? "1" : T == "c64" ? "(1.0,0.0)" : "1.0"
        p = optimized(sums(value == 1 ? "$one:$T" : "%9"))
        @test !(:cumsum in names_of(p))
        @test only(run(p, Any[fill(value)])) == repeat(multiplied.(order, value), 1, 2)
        NATIVE && @test native_agrees(p, Any[fill(value)])
    end
end
@testset "running sums of what is not finite, or whose multiples are" begin
    sums(T, n) = """(%0: $T[]) { %1: $T[$n] = broadcast_in_dim %0 {shape=[$n], dims=[]}
      %2: $T[$n] = cumsum %1 {axis=0, reverse=false} return %2 }"""
    of(T, n, x) = only(run(optimized(sums(T, n)), Any[fill(x)]))
    @test all(==(Inf), of("f64", 5, Inf)) && all(isnan, of("f64", 5, NaN))
    @test of("f16", 70000, Float16(0.25))[end] == Float16(17500)
    @test isequal(of("c64", 3, ComplexF32(Inf, 1)), [ComplexF32(Inf, k) for k in 1:3])
    @test of("f64", 4, 1e308) == [1e308, Inf, Inf, Inf]
end

"A gather of rows (or parts of them) of a 6×4 array that is filled with a number."
gathered(mode, number, T, starts; fill = "0") = """(%0: f64[], %1: $T[5,$starts]) {
  %2: f64[6,4] = broadcast_in_dim $number {shape=[6, 4], dims=[]}
  %3: f64[2,5] = gather %2 %1 {offset_dims=[0], collapsed_slice_dims=[0],
    start_index_map=$(starts == 1 ? "[0]" : "[1, 0]"), operand_batching_dims=[],
    start_indices_batching_dims=[], slice_sizes=[1, 2], mode=$mode, fill_value=$fill, sorted=false,
    unique=false}
  return %3 }"""

@testset "a gather of what is filled, mode=$mode, $T" for mode in ("clip", "fill", "promise"),
    T in ("i32", "u8", "i8")
    x(starts) = Any[Base.fill(0.7), JaxprAD.dtype_named(Symbol(T)).(starts)]
    for starts in ([0 5 2 6 100], [0 1 2 3 100; 5 0 6 1 100])
        fills = mode == "fill" ? ("0", "none", "2.5") : ("none",)
        for fill in fills, number in ("%0", "0.0:f64")
            mode == "promise" && (starts = min.(starts, 2))
            text = gathered(mode, number, T, size(starts, 1); fill = fill)
            @test !(:gather in names_of(same_optimized(text, x(starts))))
        end
    end
    signed = T == "u8" ? [0, 1, 0, 1, 3] : [-1, 0, 1, -7, 5]
    mode == "promise" || same_optimized(gathered(mode, "%0", T, 1), x(permutedims(signed)))
end

"""
A product of random axes whose factors are products of broadcasts; with how each factor is made."""
function random_product(rng)
    sizes = [rand(rng, 1:4) for _ in 1:6]
    pick(n) = n == 0 ? Int[] : collect(1:n)
    batch, contracted = rand(rng, 0:1), rand(rng, 0:2)
    own = [rand(rng, 0:2), rand(rng, 0:2)]
    n_batch, n_contracted = [sizes[k] for k in pick(batch)], [sizes[1+k] for k in pick(contracted)]
    axes = [shuffle(rng, vcat([(:batch, k, n) for (k, n) in enumerate(n_batch)],
        [(:contract, k, n) for (k, n) in enumerate(n_contracted)],
        [(:own, k, sizes[3+k]) for k in 1:own[side]])) for side in 1:2]
    place(side, kind, count) =
        Int[findfirst(a -> a[1] === kind && a[2] == k, axes[side]) - 1 for k in 1:count]
    types, lines, x, next = String[], String[], Any[], 10
    factors = map(1:2) do side
        full = [a[3] for a in axes[side]]
        made = map(1:rand(rng, 1:2)) do _
            dims = [d for d in 0:length(full)-1 if rand(rng) < 0.5]
            push!(types, "%$(length(x)): f64[$(join(full[dims.+1], ","))]")
            push!(x, normal(rng, Float64, full[dims.+1]))
            next += 1
            push!(lines, "%$next: f64[$(join(full, ","))] = broadcast_in_dim %$(length(x)-1) " *
                         "{shape=[$(join(full, ", "))], dims=[$(join(dims, ", "))]}")
            next
        end
        length(made) == 1 && return only(made)
        next += 1
        push!(lines, "%$next: f64[$(join(full, ","))] = mul %$(made[1]) %$(made[2])")
        next
    end
    kept(side) = [a[3] for a in axes[side] if a[1] === :own]
    out = "f64[$(join(vcat(n_batch, kept(1), kept(2)), ","))]"
    list(v) = "[$(join(v, ", "))]"
    text = """($(join(types, ", "))) { $(join(lines, "\n"))
      %99: $out = dot_general %$(factors[1]) %$(factors[2]) {
        lhs_contract=$(list(place(1, :contract, contracted))),
        rhs_contract=$(list(place(2, :contract, contracted))),
        lhs_batch=$(list(place(1, :batch, batch))), rhs_batch=$(list(place(2, :batch, batch))),
        dtype=f64, precision=none}
      return %99 }"""
    text, x
end

@testset "a product with what is the same along an axis, $k" for k in 1:60
    same_optimized(random_product(seeded("products of repeated $k"))...)
end

@testset "the cotangent of a sum of a product takes no product" begin
    total = """(%0: f64[4,6], %1: f64[6,5]) {
      %2: f64[4,5] = dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
        rhs_batch=[], dtype=f64, precision=none}
      %3: f64[] = reduce_sum %2 {axes=[0, 1]}
      return %3 }"""
    x = Any[randn(seeded("total"), 6, 4), randn(seeded("total 2"), 5, 6)]
    check(total, x...)
    @test !(:dot_general in names_of(JaxprAD.optimize(vjp(program(total)))))
    # 16-bit sums of one factor would be rounded before they are multiplied.
    narrow = replace(total, "f64" => "f16")
    @test :dot_general in names_of(JaxprAD.optimize(vjp(program(narrow))))
end

@testset "the range of products stays as it was" begin
    sum_of(factor) = """(%0: f64[6,4], %1: f64[]) {
      %2: f64[6,4] = broadcast_in_dim %1 {shape=[6, 4], dims=[]}
      %3: f64[6,4] = broadcast_in_dim 0.1:f64 {shape=[6, 4], dims=[]}
      %4: f64[6,4] = mul %2 1e-200:f64
      %5: f64[6,4] = mul %4 %2
      %6: f64[] = dot_general $factor %0 {lhs_contract=[0, 1], rhs_contract=[0, 1],
        lhs_batch=[], rhs_batch=[], dtype=f64, precision=none}
      return %6 }"""
    large, x = fill(5e307, 4, 6), fill(1.5, 4, 6)
    for (factor, inputs) in ("%3" => Any[large, fill(0.0)], "%2" => Any[large, fill(0.1)],
        "%5" => Any[x, fill(1e200)])
        p = same_optimized(sum_of(factor), inputs)
        @test !(:dot_general in names_of(p)) && isfinite(run(p, inputs)[1][])
    end
end

@testset "a function of what is the same along some axes is computed without them" begin
    computed(op) = """(%0: f64[4,3], %1: f64[3,5]) {
      %2: f64[4,3,5] = broadcast_in_dim %0 {shape=[4, 3, 5], dims=[0, 1]}
      %3: f64[4,3,5] = broadcast_in_dim %1 {shape=[4, 3, 5], dims=[1, 2]}
      %4: f64[4,3,5] = $op
      %5: f64[4,3,5] = mul %4 %3
      return %5 }"""
    rng = seeded("functions of broadcasts")
    x = Any[1 .+ rand(rng, 3, 4), 1 .+ rand(rng, 5, 3)]
    for op in ("div 1.5:f64 %2", "div %2 %2", "exp %2", "tanh %2", "pow %2 0.3:f64",
        "atan2 %2 %2")
        p = same_optimized(computed(op), x)
        large = [name_of(e) for e in p.equations if ndims(aval(e.outputs[1])) == 3]
        @test issubset(large, (:mul, :broadcast_in_dim))
        @test run(p, x) == run(program(computed(op)), x)
        check(computed(op), x...)
    end
    # What differs along another axis, and what is as cheap as a movement, stays.
    for (op, name) in ("div %2 %3" => :div, "add %2 1.0:f64" => :add)
        e = only(e for e in same_optimized(computed(op), x).equations if name_of(e) === name)
        @test ndims(aval(e.outputs[1])) == 3
    end
    # A size of 1 that is stretched is no axis of the operand's.
    stretched = """(%0: f64[1,3]) {
      %1: f64[4,3] = broadcast_in_dim %0 {shape=[4, 3], dims=[0, 1]}
      %2: f64[4,3] = exp %1
      return %2 }"""
    same_optimized(stretched, Any[rand(rng, 3, 1)])
    # In a chain each goes before the broadcast.
    chain = """(%0: f64[4]) {
      %1: f64[4,6] = broadcast_in_dim %0 {shape=[4, 6], dims=[0]}
      %2: f64[4,6] = exp %1
      %3: f64[4,6] = div 1.0:f64 %2
      return %3 }"""
    @test names_of(same_optimized(chain, Any[rand(rng, 4)])) == [:exp, :div, :broadcast_in_dim]
end

@testset "$n equal layers whose products are transposed, $kept" for n in (1, 2, 4),
    kept in ("none is used as it is", "one is used as it is")

    lines = join(
        ["%$(3k): f64[3,5] = dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
            rhs_batch=[], dtype=f64, precision=none}
          %$(3k + 1): f64[5,3] = transpose %$(3k) {perm=[1, 0]}
          %$(3k + 2): f64[5,3] = tanh %$(3k + 1)" for k in 1:n], "\n")
    results = join(["%$(3k + 2)" for k in 1:n], " ")
    also = startswith(kept, "one") ? " %$(3n)" : ""
    text = "(%0: f64[3,2], %1: f64[2,5]) { $lines return $results$also }"
    found = names_of(optimized(text))
    @test count(==(:tanh), found) == 1
    @test count(==(:dot_general), found) <= 1 + !isempty(also)
    x = Any[randn(seeded("layers"), 2, 3), randn(seeded("layers"), 5, 2)]
    @test run(optimized(text), x) == run(program(text), x)
    @test native_agrees(text, x...)
end

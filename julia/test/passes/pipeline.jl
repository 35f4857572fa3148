names_of(p) = map(name_of, p.equations)
optimized(text) = typecheck(optimize(program(text)))

@testset "dead code, equal equations, identities, literals" begin
    @test names_of(optimized("(%0: f64[]) { %1: f64[] = sin %0
      %2: f64[] = cos %0 return %2 }")) == [:cos]
    @test names_of(
        optimized("(%0: f64[], %1: f64[]) { %2: f64[] = mul %0 %1 %3: f64[] = mul %1 %0
%4: f64[] = max %2 %3 return %4 }")
    ) == [:mul, :max]
    @test isempty(
        optimized("(%0: f64[2]) { %1: f64[2] = mul %0 1.0:f64 %2: f64[2] = neg %1
%3: f64[2] = neg %2 return %3 }").equations
    )
    @test optimized("() { %0: f64[] = add 1.5:f64 2.0:f64 return
      %0 }").outputs == [JaxprAD.Literal(3.5)]
    zeroed = "(%0: f64[2]) { %1: f64[2] = broadcast_in_dim 0.0:f64 {shape=[2], dims=[]}
      %2: f64[2] = add %0 %1 return %2 }"
    @test isempty(optimized(zeroed).equations)
end

@testset "extrema with the least number and the largest" begin
    for (op, number) in (("max", "-inf:f64"), ("min", "inf:f64"))
        for operands in ("%0 $number", "$number %0")
            p = optimized("(%0: f64[2]) { %1: f64[2] = $op $operands return %1 }")
            @test isempty(p.equations)
        end
    end
    kept = optimized("(%0: f64[2]) { %1: f64[2] = max %0 inf:f64 return %1 }")
    @test length(kept.equations) == 1
    byte = optimized("(%0: u8[2]) { %1: u8[2] = max %0 0:u8 return %1 }")
    @test isempty(byte.equations)
end

@testset "transposes" begin
    product = "%2: f64[2,3,5] = dot_general %0 %1 {lhs_contract=[2], rhs_contract=[2],
      lhs_batch=[0], rhs_batch=[1], dtype=f64, precision=none}"
    head = "(%0: f64[2,3,4], %1: f64[5,2,4]) { $product
      %3: f64[2,5,3] = transpose %2 {perm=[0, 2, 1]}"
    x = [reshape(collect(1.0:24), 4, 3, 2), reshape(collect(1.0:40), 4, 2, 5)]
    for (text, names) in ("$head return %3 }" => [:dot_general], "$head return %2
      %3 }" => [:dot_general, :transpose],
        "$head %4: f64[2,3,5] = transpose %3 {perm=[0, 2, 1]} return
          %4 }" => [:dot_general])
        @test names_of(optimized(text)) == names
        @test run(optimized(text), x) == run(program(text), x)
    end
end

product(left, right, contract, batch = ("[]", "[]")) =
    "dot_general $left $right {lhs_contract=$(contract[1]), rhs_contract=$(contract[2]), " *
    "lhs_batch=$(batch[1]), rhs_batch=$(batch[2]), dtype=f64, precision=none}"
agree(text, x) = relative_error(run(optimized(text), x), run(program(text), x)) < 1e-14

@testset "a product of what is transposed" begin
    r = seeded("products of transposed")
    x = Any[normal(r, Float64, [3, 4, 5]), normal(r, Float64, [5, 3, 4])]
    head(perm, shape) = "(%0: f64[3,4,5], %1: f64[5,3,4]) {
      %2: f64[$(join(shape, ","))] = transpose %0 {perm=$perm} "
    dot(out, contract, batch = ("[]", "[]")) =
        "%3: f64[$out] = $(product("%2", "%1", contract, batch)) return %3 }"
    # one free axis, contracted and batch axes in every order; two that stay in order
    for text in (head([2, 0, 1], [5, 3, 4]) * dot("4,4", ([0, 1], [0, 1])),
        head([1, 2, 0], [4, 5, 3]) * dot("3,5,5", ([0], [2]), ([2], [1])),
        head([2, 0, 1], [5, 3, 4]) * dot("3,4,3,4", ([0], [0])))
        @test names_of(optimized(text)) == [:dot_general]
        @test agree(text, x)
    end
    text = head([2, 1, 0], [5, 4, 3]) * dot("4,3,3,4", ([0], [0]))
    @test names_of(optimized(text)) == [:transpose, :dot_general]
    @test agree(text, x)
end

@testset "sums of products with one factor in common" begin
    r = seeded("sums of products")
    # x S + x Sᵀ: the gradient of what depends on xᵀ x, on either side
    for (n, made) in (9 => [:transpose, :add, :dot_general], 7 => nothing), left in (true, false)
        one(k) = left ? product("%0", "%1", ([1], [k])) :
                 product("%1", "%0", ([k], [1]))
        out = left ? "$n,6" : "6,$n"
        text = "(%0: f64[$n,6], %1: f64[6,6]) { %2: f64[$out] = $(one(0)) %3: f64[$out] = $(one(1))
          %4: f64[$out] = add %2 %3 return %4 }"
        names = names_of(optimized(text))
        @test made === nothing ? count(==(:dot_general), names) == 2 : names == made
        @test agree(text, Any[normal(r, Float64, [n, 6]), normal(r, Float64, [6, 6])])
    end
    # x W - y W, and what is wider than its factors
    shared(T) = "(%0: $T[6,6], %1: $T[6,6], %2: $T[6,9]) {
      %3: f64[6,9] = $(product("%0", "%2", ([1], [0])))
      %4: f64[6,9] = $(product("%1", "%2", ([1], [0])))
      %5: f64[6,9] = sub %3 %4 return %5 }"
    @test names_of(optimized(shared("f64"))) == [:sub, :dot_general]
    @test agree(shared("f64"), Any[normal(r, Float64, n) for n in ([6, 6], [6, 6], [6, 9])])
    @test count(==(:dot_general), names_of(optimized(shared("f32")))) == 2
end

@testset "nothing that changes values is assumed" begin
    # NaN and Inf
    @test names_of(optimized("(%0: f64[]) { %1: f64[] = mul %0 0.0:f64 return %1 }")) == [:mul]
    @test names_of(optimized("(%0: f64[]) { %1: f64[] = sub %0 %0 return %1 }")) == [:sub]
    @test names_of(optimized("(%0: f64[]) {
      %1: f64[] = stop_gradient %0 return %1 }")) == [:stop_gradient]
end

@testset "unsigned integers" begin
    @test names_of(optimized("(%0: u8[]) { %1: u8[] = mul %0 3:u8 return %1 }")) == [:mul]
    quotient = "(%0: u8[], %1: u8[]) { %2: u8[] = neg %0 %3: u8[] = div %2 %1 return %3 }"
    x = [fill(0x02), fill(0x03)]
    @test run(optimized(quotient), x) == run(program(quotient), x) == [fill(0x54)]
end

@testset "L(u) + L(v) becomes L(u + v)" begin
    sums = "(%0: f64[4,3], %1: f64[4,3]) { %2: f64[3] = reduce_sum %0 {axes=[0]}
      %3: f64[3] = reduce_sum %1 {axes=[0]} %4: f64[3] = OP %2 %3 return %4 }"
    @test names_of(optimized(replace(sums, "OP" => "add"))) == [:add, :reduce_sum]
    @test names_of(optimized(replace(sums, "OP" => "sub"))) == [:sub, :reduce_sum]
    products = "(%0: f64[], %1: f64[]) { %2: f64[] = mul %0 -2.0:f64 %3: f64[] = mul -2.0:f64 %1
      %4: f64[] = add %2 %3 return %4 }"
    @test names_of(optimized(products)) == [:add, :mul]
    kept = "(%0: f64[4,3], %1: f64[4,3]) { %2: f64[3] = reduce_sum %0 {axes=[0]}
      %3: f64[3] = reduce_sum %1 {axes=[0]} %4: f64[3] = add %2 %3 return %4 %2 }"
    @test count(==(:reduce_sum), names_of(optimized(kept))) == 2
end

@testset "several linear maps in one sum" begin
    # 5a + 5b + 7a: the first two join; what they became joins nothing again
    p = optimized("(%0: f64[], %1: f64[]) { %4: f64[] = mul %0 5.0:f64
      %5: f64[] = mul %1 5.0:f64 %6: f64[] = mul %0 7.0:f64 %7: f64[] = add %4 %5
      %8: f64[] = add %7 %6 return %8 }")
    @test sort(names_of(p)) == [:add, :add, :mul, :mul]
    @test run(p, [fill(2.0), fill(3.0)])[1][] == 2 * 5 + 3 * 5 + 2 * 7
end

@testset "terms are not added where their sum may overflow and the map makes less of it" begin
    for (of, T) in (("f16", Float16), ("f32", Float32), ("f64", Float64)),
        (op, factor, w) in (("mul", "%2", T(-0.3532)), ("mul", "0.25:$of", T(0.25)),
            ("div", "%2", T(8)), ("div", "4.0:$of", T(4)))

        text = "(%0: $of[3], %1: $of[3], %2: $of[3]) { %3: $of[3] = $op %0 $factor
          %4: $of[3] = $op %1 $factor %5: $of[3] = add %3 %4 return %5 }"
        x = T[0.6, -0.7, 0.9] .* floatmax(T)
        inputs = Any[x, x, fill(w, 3)]
        y = run(optimized(text), inputs)[1]
        @test all(isfinite, y) && y == run(program(text), inputs)[1]
    end
    product = "dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[],
      dtype=f16, precision=none}"
    text = "(%0: f16[9,2], %1: f16[2,9], %2: f16[9,2]) { %3: f16[9,9] = $product
      %4: f16[9,9] = $(replace(product, "%0" => "%2")) %5: f16[9,9] = add %3 %4 return %5 }"
    x = fill(Float16(4e4), 2, 9)
    y = run(optimized(text), Any[x, fill(Float16(0.1), 9, 2), x])[1]
    @test all(isfinite, y)
end

@testset "pairs of terms shared by sums" begin
    # (s + a) - e next to a - e
    p = optimized("(%0: f64[], %1: f64[], %2: f64[]) { %3: f64[] = sub %1 %2 %4: f64[] = add %0 %1
      %5: f64[] = sub %4 %2 %6: f64[] = mul %3 %5 return %6 }")
    @test names_of(p) == [:sub, :add, :mul]
    @test run(p, [fill(1.0), fill(2.0), fill(5.0)])[1][] == (2 - 5) * (1 + 2 - 5)
end

@testset "compensated sums keep their meaning" begin
    # Neumaier's TwoSum: the rounding error of a + b, exactly
    two_sum = """(%0: f64[], %1: f64[]) {
      %2: f64[] = add %0 %1
      %3: f64[] = sub %2 %0
      %4: f64[] = sub %2 %3
      %5: f64[] = sub %0 %4
      %6: f64[] = sub %1 %3
      %7: f64[] = add %5 %6
      return %2 %7
    }"""
    a, b = fill(1.0), fill(1e-17)
    @test run(optimized(two_sum), [a, b]) == [fill(1.0), fill(1e-17)]
    # one step of Kahan's summation
    kahan = """(%0: f64[], %1: f64[], %2: f64[]) {
      %3: f64[] = sub %2 %1
      %4: f64[] = add %0 %3
      %5: f64[] = sub %4 %0
      %6: f64[] = sub %5 %3
      return %4 %6
    }"""
    x = [fill(1.0), fill(0.0), fill(1e-17)]
    @test run(optimized(kahan), x) == run(program(kahan), x) == [fill(1.0), fill(-1e-17)]
end

@testset "no equation more: a sign that is used twice stays where it is" begin
    p = "(%0: f64[], %1: f64[]) { %2: f64[] = neg %0 %3: f64[] = mul %2 %1
      %4: f64[] = sin %2 return %3 %4 }"
    @test names_of(optimized(p)) == [:neg, :mul, :sin]
    twins = "(%0: f64[], %1: f64[]) { %2: f64[] = neg %0 %3: f64[] = neg %0 %4: f64[] = mul %2 %1
      %5: f64[] = div %3 %1 %6: f64[] = sin %3 return %4 %5 %6 }"
    @test length(names_of(optimized(twins))) <= 5
end

@testset "constants of different dtypes are different, whatever Julia thinks of 0 == false" begin
    p = optimized("""() {
      %0: i64[1] = constant {value=[0]}
      %1: bool[1] = constant {value=[false]}
      %2: i64[1] = constant {value=[0]}
      return %0 %1 %2
    }""")
    @test map(v -> v.type.dtype, p.outputs) == [Int64, Bool, Int64] && length(p.equations) == 2
end

@testset "the seed: two transposed broadcasts, one reduction" begin
    seed = program("""(%0: f32[8,4], %1: f32[4]) {
      %2: f32[8,4] = broadcast_in_dim %1 {shape=[8, 4], dims=[1]}
      %3: f32[8,4] = mul %2 %0
      %4: f32[8,4] = sin %3
      %5: f32[8,4] = integer_pow %4 {y=2}
      %6: f32[8,4] = div %5 %2
      return %6
    }""")
    @test count(==(:reduce_sum), names_of(vjp(seed))) + count(==(:add), names_of(vjp(seed))) >= 2
    @test count(==(:reduce_sum), names_of(typecheck(optimize(vjp(seed))))) == 1
end

@testset "bodies are optimised, and the work is linear in the Program" begin
    loop = "(%0: f64[]) { %1: f64[] = scan %0 {length=2, reverse=false, consts=0, carry=1, unroll=1,
      body=(%0: f64[]) { %1: f64[] = sin %0 %2: f64[] = sin %0
      %3: f64[] = add %1 %2 return %3 }} return %1 }"
    @test names_of(optimized(loop).equations[1][:body]) == [:sin, :add]
    chain(n) =
        program(
            "(%0: f64[]) { " *
            join(
                (
                    "%$(k): f64[] = $(isodd(k) ? "sin" : "mul") %$(k-1)$(isodd(k) ? "" : " %0")"
                    for k in 1:n
                ), "\n") * "\nreturn %$n }"
        )
    work(n) = (p = chain(n); least_seconds(() -> optimize(vjp(p))))
    @test work(4000) < 8 * work(1000) + 0.1
end

@testset "a number with its gradient" begin
    text = "(%0: f64[3], %1: f64[4,3], %2: i32[]) {
      %3: f64[3], %4: f64[4,3] = scan %0 %1 {length=4, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[3], %1: f64[3]) {
        %2: f64[3] = mul %0 %1 %3: f64[3] = sin %2 return %3 %2 }}
      %5: f64[4,3] = exp %4
      %6: f64[] = reduce_sum %5 {axes=[0, 1]}
      %7: i32[] = add %2 1:i32
      return %7 %6 }"
    p, r = program(text), seeded("a number with its gradient")
    x = Any[randn(r, 3), randn(r, 3, 4), fill(Int32(3))]
    for active in ([true, true, false], [false, true, false])
        q = typecheck(JaxprAD.with_gradient(p, active))
        wanted = run(vjp(p, active; value = true), [x; [fill(1.0)]])
        @test relative_error(run(q, x), wanted) < 1e-14
        @test length(q.inputs) == 3
        @test native_agrees(q, x; tolerance = 1e-12)
    end
    constant = program("(%0: f64[2]) { %1: f64[2] = floor %0
      %2: f64[] = reduce_sum %1 {axes=[0]} return %2 }")
    @test JaxprAD.with_gradient(constant, [true]) === nothing
end

@testset "powers by literal whole numbers" begin
    power(n, T = "f64") = "(%0: $T[5]) { %1: $T[] = copy $n:$T
      %2: $T[5] = broadcast_in_dim %1 {shape=[5], dims=[]} %3: $T[5] = pow %0 %2 return %3 }"
    x = [-3.0, -0.0, 1e-200, Inf, NaN]
    for n in ("-1.0", "0.0", "1.0", "2.0", "3.0")
        p = optimized(power(n))
        @test names_of(p) == (n == "1.0" ? [] : [:integer_pow])
        y, expected = run(p, [x])[1], run(program(power(n)), [x])[1]
        @test all(isequal.(y, expected) .| isapprox.(y, expected; rtol = 1e-15))
    end
    # what has other digits, another range, or other values at infinity
    for text in (power("-2.0"), power("4.0"), power("0.5"), power("(2.0,0.0)", "c128"))
        @test :pow in names_of(optimized(text))
    end
end

@testset "reductions of one element each" begin
    reduced(op, T, axes, from, to) = optimized("(%0: $T[$from]) { %1: $T[$to] = $op %0
      {axes=$axes} return %1 }")
    for (op, T) in (("reduce_sum", "f64"), ("reduce_prod", "f64"), ("reduce_max", "f32"),
        ("reduce_min", "i32"), ("reduce_or", "bool"), ("reduce_and", "bool"))

        @test isempty(reduced(op, T, "[]", "2,1", "2,1").equations)
        @test names_of(reduced(op, T, "[1]", "2,1", "2")) == [:reshape]
        @test names_of(reduced(op, T, "[0]", "2,1", "1")) == [Symbol(op)]
    end
end

@testset "sums of no elements are 0, whatever is repeated" begin
    infinite = "%1: f64[] = log 0.0:f64 %2: f64[0,3] = broadcast_in_dim %1 {shape=[0, 3], dims=[]}"
    dot = product("%0", "%2", ([1], [0]))
    for text in ("() { $infinite %3: f64[3] = reduce_sum %2 {axes=[0]} return %3 }",
        "(%0: f64[2,0]) { $infinite %3: f64[2,3] = $dot return %3 }")
        x = startswith(text, "()") ? [] : [zeros(0, 2)]
        for p in (program(text), optimized(text), optimize(program(text); factor = false))
            @test all(iszero, run(p, x)[1])
        end
    end
end

@testset "what is for transforms only is not in native code" begin
    for op in ("stop_gradient", "copy")
        p = JaxprAD.prepare_native(program("(%0: f64[2]) { %1: f64[2] = $op %0
          %2: f64[2] = sin %1 return %2 %1 }"))
        @test names_of(p) == [:sin] && p.outputs[2] === p.inputs[1]
        @test JaxprAD.run(JaxprAD.compile(p), p, [[1.0, 2.0]]) == [sin.([1.0, 2.0]), [1.0, 2.0]]
    end
end

@testset "native code computes formulas as they are written" begin
    # What is factored rounds otherwise: programs that compute their own rounding errors differ.
    text = "(%0: f64[], %1: f64[]) { %2: f64[] = mul %0 3.0:f64 %3: f64[] = mul 3.0:f64 %1
      %4: f64[] = add %2 %3 return %4 }"
    x = [fill(1.0), fill(1e-16)]
    @test names_of(optimized(text)) == [:add, :mul]
    @test names_of(optimize(program(text); factor = false)) == [:mul, :mul, :add]
    dot = product("%0", "%1", ([0], [0]))
    mean = program("(%0: f64[10]) { %1: f64[10] = broadcast_in_dim 0.1:f64 {shape=[10], dims=[]}
      %2: f64[] = $dot return %2 }")
    @test names_of(optimize(mean)) == [:mul, :reduce_sum]
    # Of Julia 1.5's, LLVM takes the number out of short sums again.
    @test run(optimize(mean), [fill(1e308, 10)])[1][] ≈ 1e308
    @test JaxprAD.run(JaxprAD.compile(mean), mean, [fill(1e308, 10)])[1][] ≈ 1e308
    native(p) = JaxprAD.run(JaxprAD.compile(p), p, x)[1][]
    @test native(program(text)) == 3.0000000000000004 != native(optimized(text))
end

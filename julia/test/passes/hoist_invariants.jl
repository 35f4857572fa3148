# What loops compute in every trip, expensive and always the same, is computed before them.

rng = seeded("hoist")
body_of(p, op) = only([e[:body] for e in p.equations if JaxprAD.name(e.op) === op])
typechecks(p) = JaxprAD.typecheck(p) === p
product =
    "lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[], " *
    "dtype=f64, precision=none"

@testset "scan" begin
    p = program("""(%0: f64[4,3], %1: f64[3], %2: f64[4]) {
      %3: f64[4] = scan %0 %1 %2 {length=5, reverse=false, consts=2, carry=1, unroll=1,
        body=(%0: f64[4,3], %1: f64[3], %2: f64[4]) {
        %3: f64[4] = dot_general %0 %1 {$product}
        %4: f64[4] = exp %3
        %5: f64[4,4] = broadcast_in_dim %4 {shape=[4, 4], dims=[0]}
        %6: f64[4,4] = broadcast_in_dim %2 {shape=[4, 4], dims=[1]}
        %7: f64[4,4] = mul %5 %6
        %8: f64[4] = reduce_sum %7 {axes=[1]}
        %9: f64[3] = add %1 1.0:f64
        %10: f64[4] = dot_general %0 %9 {$product}
        %11: f64[4] = mul %10 %2
        %12: f64[4] = add %8 %11
        return %12
      }}
      %4: f64[4] = dot_general %0 %1 {$product}
      return %3 %4
    }""")
    q = JaxprAD.hoist_invariants(p)
    # What is only moved about stays where it is read, and so would what is cheap if
    # nothing expensive came of it.
    @test typechecks(q) &&
          names_in(q) == [:dot_general, :exp, :add, :dot_general, :scan, :dot_general]
    @test names_in(body_of(q, :scan)) ==
          [:broadcast_in_dim, :broadcast_in_dim, :mul, :reduce_sum, :mul, :add]
    x = Any[randn(rng, 3, 4), randn(rng, 3), randn(rng, 4)]
    @test relative_error(run(q, x), run(p, x)) < 1e-14
    @test native_agrees(p, x) && heap_free(p)
end

@testset "nested loops" begin
    inner = """%3: f64[3], %4: i32[] = while %0 %1 %2 {cond_consts=0, body_consts=1, bound=none,
      cond=(%0: f64[3], %1: i32[]) {
          %2: bool[] = lt %1 2:i32
          return %2
        }, body=(%0: f64[3], %1: f64[3], %2: i32[]) {
          %3: f64[3] = sin %0
          %4: f64[3] = add %3 %1
          %5: i32[] = add %2 1:i32
          return %4 %5
        }}"""
    p = program("""(%0: f64[3], %1: f64[3], %2: i32[]) {
      %3: f64[3] = sin %0
      %4: f64[3] = scan %0 %2 %3 {length=2, reverse=false, consts=2, carry=1, unroll=1,
        body=(%0: f64[3], %1: i32[], %2: f64[3]) {
        $(replace(inner, "while %0 %1 %2" => "while %0 %2 %1"))
        return %3
      }}
      return %4
    }""")
    q = JaxprAD.hoist_invariants(p)
    # Out of both loops, where it is already.
    @test typechecks(q) && names_in(q) == [:sin, :scan]
    @test names_in(body_of(body_of(q, :scan), :while)) == [:add, :add]
    for start in Int32[0, 1, 2]     # a loop without trips too
        x = Any[randn(rng, 3), randn(rng, 3), fill(start)]
        @test run(q, x) == run(p, x)
        @test native_agrees(p, x)
    end
end

@testset "nothing to move" begin
    once = "(%0: f64[3], %1: f64[3]) { %2: f64[3] = scan %0 %1 {length=LENGTH, reverse=false,
      consts=1, carry=1, unroll=1, body=(%0: f64[3], %1: f64[3]) { %2: f64[3] = OP %0
      %3: f64[3] = add %2 %1 return %3 }} return %2 }"
    for (n, op, names) in ((1, "exp", [:scan]), (2, "neg", [:scan]), (2, "exp", [:exp, :scan]))
        @test names_in(
            JaxprAD.hoist_invariants(program(replace(replace(once, "LENGTH" => n),
                "OP" => op)))
        ) == names
    end
    # A result that no trip changes.
    p = program("(%0: f64[3], %1: f64[3]) { %2: f64[3],
      %3: f64[2,3] = scan %0 %1 {length=2, reverse=false, consts=1, carry=1, unroll=1,
      body=(%0: f64[3], %1: f64[3]) { %2: f64[3] = exp %0 return %2 %2 }} return %2 %3 }")
    @test native_agrees(p, Any[randn(rng, 3), randn(rng, 3)])
end

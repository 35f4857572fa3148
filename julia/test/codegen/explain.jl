# The compiler's account of what it did.

const EXPLAINED = parse_program("""
    pybridge 1
    program f(%0: f32[600,64], %1: f32[64,64]) {
      %2: f32[600,64] = dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
        rhs_batch=[], dtype=f32, precision=none}  # model.py:3 (f)
      %3: f32[600,64] = tanh %2  # model.py:4 (f)
      %4: f32[600,64] = mul %3 %3  # model.py:4 (f)
      %5: f32[600] = reduce_sum %4 {axes=[1]}  # model.py:5 (f)
      %6: f32[64] = broadcast_in_dim 0.0:f32 {shape=[64], dims=[]}
      %7: f32[64], %8: f32[600] = scan %6 %3 {length=600, reverse=false, consts=0, carry=1,
        unroll=1, body=(%0: f32[64], %1: f32[64]) {
        %2: f32[64] = add %0 %1  # model.py:7 (step)
        %3: f32[] = reduce_sum %2 {axes=[0]}  # model.py:8 (step)
        return %2 %3
      }}  # model.py:9 (f)
      return %5 %7 %8
    }
    """)

@testset "the plan says what is computed where, and why arrays are in memory" begin
    text = JaxprAD.explain(EXPLAINED)
    @test startswith(text, "f: ") && occursin("of workspace, compiled in", text)
    for stage in ("reroll_loops", "assign_layouts", "lower", "machine_code")
        @test occursin(Regex("\n  $stage +[0-9.]+ ms"), text)
    end
    @test occursin("dot_general (model.py:3 (f)) → f32[600,64]: reads 166 " *
                   "KiB, writes 150 KiB", text)
    @test occursin(
        "array f32[600,64], 150 KiB, of tanh (model.py:4 (f)): needed whole by " *
        "scan (model.py:9 (f))", text)
    @test occursin("\nloop nest 600×64", text)
    @test occursin("\n  model.py:4 (f): tanh mul\n  model.py:5 (f): reduce_sum\n", text)
    @test occursin("\nscan (model.py:9 (f)), 600 trips → f32[64], f32[600]", text)
    @test occursin(
        "\n  loop nest 64: reads 512 B, writes 260 B\n    model.py:7 (step): add\n    " *
        "model.py:8 (step): reduce_sum\n", text)
end

@testset "what threads share is said" begin
    large = parse_program(
        "pybridge 1\nprogram f(%0: f32[4096,512]) {\n  %1: f32[4096,512] = " *
        "sin %0\n  return %1\n}\n"
    )
    how =
        Sys.CPU_THREADS > 1 ?
        r"\nloop nest 4096×512, in \d+ chunks for threads: reads 8 MiB, writes 8 MiB\n" :
        r"\nloop nest 4096×512: reads"
    @test occursin(how, JaxprAD.explain(large))
end

@testset "explaining compiles what compiling does" begin
    x = Any[rand(Float32, 64, 600), rand(Float32, 64, 64)]
    before = JaxprAD.run(JaxprAD.compile(EXPLAINED), EXPLAINED, x)
    JaxprAD.explain(EXPLAINED)
    @test JaxprAD.run(JaxprAD.compile(EXPLAINED), EXPLAINED, x) == before
end

@testset "what has no kernel is refused as when it is compiled" begin
    p = parse_program(
        "pybridge 1\nprogram f(%0: f64[<n>]) {\n  %1: f64[<n>] = " *
        "sin %0\n  return %1\n}\n"
    )
    @test_throws JaxprAD.ProgramTypeError JaxprAD.compile(p)
    @test_throws JaxprAD.ProgramTypeError JaxprAD.explain(p)
end

@testset "runs of words" begin
    @test JaxprAD.run_lengths(["mul", "mul", "add", "mul"]) == "mul×2 add mul"
    @test JaxprAD.run_lengths(["mul"]) == "mul" && JaxprAD.run_lengths(String[]) == ""
end

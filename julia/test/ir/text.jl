const SAMPLE = """
pybridge 1
program f(%0: f32[2,<b>], %1: i8[]) {
  %2: f32[2,<b>] = mul %0 1.0e-30:f32  # model.py:3 (f)
  %3: f32[2,<b>], %4: bool[] = cond 0:i32 %2 {branches=[(%0: f32[2,<b>]) {
    return %0 true:bool
  }]}
  %5: c64[3] = constant {value=[0.10000000149011612, -0.0, inf, nan, 1.0, 2.0]}
  return %3 %5 (1.5,-inf):c64 nan:f64 %4
}
program g() {
  return
}
"""
@testset "text reads back as the same text" begin
    @test program_text(JaxprAD.parse_programs(SAMPLE)...) == SAMPLE
    @test program("( ) {return 1 :i8}").outputs == [JaxprAD.Literal(Int8(1))]
end
@testset "numbers are exact" begin
    rng = seeded("numbers")
    for T in (Float64, Float32), _ in 1:2000
        x = reinterpret(T, rand(rng, T === Float64 ? UInt64 : UInt32))
        text = JaxprAD.number_text(x)
        back = parse(T, replace(text, "nan" => "NaN"))
        @test isequal(back, x) || (isnan(x) && isnan(back))
    end
    shown = map(JaxprAD.number_text, (0.1f0, 1e15, 1e16, 1e-5, 1e-6, 123.0, 5e-324, -2.5))
    @test shown == ("0.1", "1000000000000000.0", "1.0e16", "0.00001", "1.0e-6", "123.0",
        "5.0e-324", "-2.5")
end
position(text) =
    try
        JaxprAD.parse_programs(text)
        nothing
    catch e
        e isa JaxprAD.ProgramSyntaxError ? (e.line, e.column) : rethrow()
    end
@testset "errors have positions" begin
    @test position("pybridge 1\nprogram f() {\n  return ?\n}") == (3, 10)
    @test position("hello") == (1, 1)
    @test position("pybridge 1\nprogram f(%0: f32[]) {\n  %1: f32[] = sin %7\n  return %1\n}") ==
          (3, 19)
    @test position(
        "pybridge 1\nprogram f(%0: f32[]) {\n  %1: f32[] = nonsense %0\n  " *
        "return %1\n}"
    ) == (3, 15)
    @test_throws JaxprAD.ProgramVersionError JaxprAD.parse_programs("pybridge 2\n")
end
@testset "broken text is a ProgramSyntaxError or a ProgramTypeError, never anything else" begin
    rng = seeded("broken")
    bytes = Vector{UInt8}(SAMPLE)
    for _ in 1:3000
        broken = copy(bytes)
        for _ in 1:rand(rng, 1:3)
            k = rand(rng, 1:length(broken))
            rand(rng) < 0.5 ? (broken[k] = rand(rng, UInt8)) : deleteat!(broken, k)
        end
        outcome = try
            foreach(typecheck, JaxprAD.parse_programs(String(broken)))
            :fine
        catch e
            e
        end
        @test outcome === :fine || outcome isa JaxprAD.JaxprADError
    end
end
@testset "deep nesting is refused, not a stack overflow" begin
    deep =
        "pybridge 1\nprogram f() { %0: f32[] = constant {value=" * "["^5000 * "]"^5000 *
        "} return }"
    @test position(deep) !== nothing
end
@testset "20 000 equations" begin
    text =
        "pybridge 1\nprogram f(%0: f32[]) {\n" *
        join("  %$k: f32[] = sin %$(k-1)\n" for k in 1:20000) * "  return %20000\n}\n"
    JaxprAD.parse_programs(SAMPLE)
    @test (@elapsed program_text(parse_program(text))) < 20
end

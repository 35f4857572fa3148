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
@testset "what no machine could hold is refused where it stands" begin
    typed(equation) = try
        JaxprAD.checked_programs(
            "pybridge 1\nprogram f(%0: f32[0], %1: f32[2]) {\n  $equation\n  return\n}")
        ""
    catch e
        e isa JaxprAD.JaxprADError ? sprint(showerror, e) : rethrow()
    end
    large = "4294967296,4294967296"
    for (equation, words) in [
        "%2: f32[$large] = reshape %0 {shape=[$large]}" => "line 3, column 7: f32[$large] has more",
        "%2: f32[0,$large] = copy %0" => "more than 2^47 bytes",
        "%2: f32[0] = reshape %0 {shape=[$large]}" => "line 3, column 3: f, equation 1 (reshape)",
        "%2: f32[$(join(fill(1, 65), ','))] = copy %0" => "more than 64",
        "%2: f32[<b^300000000>] = copy %0" => "line 3, column 11: a symbolic dimension has a",
        "%2: f32[<b - b - 3>] = copy %0" => "is the number -3",
        "%2: f32[] = reduce_sum %1 {axes=[[0]]}" => "line 3, column 3: f, equation 1 (reduce_sum)",
        "%2: f32[] = reduce_sum %1 {axes=yes}" => "the attribute axes cannot",
        "%2: f32[2] = rev %1 {dims=[yes]}" => "the attribute dims cannot",
        "%2: f32[2] = reshape %1 {shape=[-2]}" => "reshape",
        "%2: f32[2] = reverse_is_none" => "unknown primitive",
        "%2: f32[2] = cond 0:i32 %1 {branches=[]}" => "line 3, column 3: f, equation 1 (cond)",
        "%2: f32[2] = sin %1 %0 %0" => "takes 1 operands",
    ]
        @test occursin(words, typed(equation))
    end
    @test typed("%2: f32[2] = sin %1 # comment\n # another\n %3: f32[2] = neg # here\n %2") == ""
end
@testset "strings are those of JSON" begin
    read_back(string) = String(
        parse_program("pybridge 1\nprogram f(%0: f32[]) { %1: f32[] = " *
                      "convert_element_type %0 {dtype=$string} return }").equations[1][:dtype])
    @test read_back("\"\\ud83d\\ude00\\n\\u0041/\\/\"") == "😀\nA//"
    for text in ("\\ud83d", "\\ude00\\ud83d", "\\x", "\\u12g4", "a\tb", "a\nb")
        @test_throws JaxprAD.ProgramSyntaxError read_back("\"$text\"")
    end
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

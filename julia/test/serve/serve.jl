served(command, body = "") = JaxprAD.serve("$command\n$body")
const LINE = "pybridge 1\nprogram f(%0: f64[2]) {\n  %1: f64[2] = sin %0\n  return %1\n}\n"
@testset "answers" begin
    @test served("normalize", LINE) == "ok\n" * LINE
    @test startswith(served("vjp m1 0 optimize", LINE), "ok\npybridge 1\nprogram vjp_f(")
    @test startswith(served("linearize m1", LINE), "ok\n1 ")
    @test all(line -> occursin(r"^\w+ [01] [01] [01] (own|fused|inlined|none) (-|\d(,\d)*)$", line),
        split(chomp(served("rules")), '\n')[2:end])
    rules = split(chomp(served("rules")), '\n')
    @test all(in(rules),
        ["add 1 1 0 fused -", "floor 0 0 1 fused -", "sort 1 0 0 own -", "schur 0 0 0 own -",
            "zeta 1 0 0 fused 0", "remat 1 1 0 inlined -", "nextafter 1 0 0 fused -"])
end
@testset "evaluation in place" begin
    x, y = [0.5, 1.0], zeros(2)
    GC.@preserve x y @test served("evaluate $(UInt(pointer(x))) $(UInt(pointer(y))) -",
        LINE) == "ok\n"
    @test y == sin.(x)
end
@testset "errors are answers, with kind and stack trace" begin
    for (command, body, kind) in (("vjp m1 0", "nonsense", "ProgramSyntaxError"),
        ("sing", "", "ArgumentError"),
        ("vjp m1 0", replace(LINE, "f64" => "i32"), "ProgramTypeError"),
        ("transpose m1 m1", LINE, "UnsupportedPrimitive"))
        head, rest = split(served(command, body), '\n'; limit = 2)
        @test head == "error" && startswith(rest, "$kind\n") && occursin("\n-----\n", rest)
    end
end
@testset "of a recursion without end both ends of the stack are told" begin
    endless(x) = 1 + endless(x + 1)
    trace = try
        endless(1)
    catch e
        catch_backtrace()
    end
    text, seconds = JaxprAD.trace_text(trace), @elapsed JaxprAD.trace_text(trace)
    @test length(trace) > 2JaxprAD.SHOWN_FRAMES > count(==('\n'), text) / 3 && seconds < 3
    @test occursin("endless", text) && occursin("frames ...", text)
end
@testset "a raised flag ends whatever takes a step, and the next request lowers it" begin
    flag = Ptr{Int32}(UInt(JaxprAD.cancel_address()))
    unsafe_store!(flag, Int32(1))
    @test_throws InterruptException vjp(parse_program(LINE))
    @test_throws InterruptException run(parse_program(LINE), [[1.0, 2.0]])
    @test served("normalize", LINE) == "ok\n" * LINE
    @test unsafe_load(flag) == 0
end

# `@test_derivatives` within test sets of `Test`, those that fail among them.

include("../support/tracing.jl")

square(x) = x^2
wrong_square(x) = x^2
wrong_square(x::JaxprAD.TracedReal) = x^2 + 1e-3 * x

@testset "right ones" begin
    @test_derivatives square(3.0)
    @test_derivatives sum([1.0, 2.0]) order = 1 rtol = 1e-9
    @test_derivatives ((x, a) -> a .* x)([1.0, 2.0], 3.0) native = true order = 1
end

const SCRIPT = """
using JaxprAD, Test
rule((x, rate), (ẋ, ṙ)) = (x * rate^2, ẋ * rate^2 + x * rate * ṙ)
product = custom_jvp((x, rate) -> x * rate^2, rule)
wrong(x, rate) = product(x, rate)
@testset "model" begin
    @test_derivatives wrong(2.0, 3.0) order = 1
end
"""
"What a script prints, and whether it ends well, in a process of its own."
function output_of(script)
    mktempdir() do folder
        path, log = joinpath(folder, "tests.jl"), joinpath(folder, "log")
        write(path, script)
        path_list = joinpath(@__DIR__, "..", "..") * ":"
        command = addenv_(`$(Base.julia_cmd()) --startup-file=no $path`, path_list)
        done = Base.run(pipeline(ignorestatus(command); stdout = log, stderr = log))
        read(log, String), success(done)
    end
end
addenv_(command, path_list) =
    setenv(command, merge(Dict(ENV), Dict("JULIA_LOAD_PATH" => path_list)))

@testset "wrong ones" begin
    printed, fine = output_of(SCRIPT)
    @test !fine
    @test occursin("tests.jl:6", printed)
    @test occursin("rate: JVP", printed) && occursin("rate: VJP", printed)
    @test occursin(r"ẏ -?\d.*by differences", printed) && occursin("x: value", printed) == false
    @test occursin("derivatives of wrong", printed)
    # the value is right, and forward and reverse mode belong together
    @test occursin("ȳ·Jẋ = Jᵀȳ·ẋ: Test Failed", printed) == false
end

@testset "what is no call" begin
    apart = Module()
    Core.eval(apart, :(using JaxprAD))
    thrown(expression) = try
        macroexpand(apart, expression)
        nothing
    catch e
        e isa LoadError ? e.error : e
    end
    @test thrown(:(@test_derivatives f)) isa ArgumentError
    @test thrown(:(@test_derivatives f(x; y = 1))) isa ArgumentError
    @test thrown(:(@test_derivatives f(x) 3)) isa ArgumentError
    @test occursin("using Test", sprint(showerror, thrown(:(@test_derivatives f(x)))))
end

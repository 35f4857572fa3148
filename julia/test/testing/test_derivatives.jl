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
squared(rate) = rate^2
squared(rate::JaxprAD.TracedReal) = rate^2 + 1e-3 * (rate - 3)
wrong(x, rate) = x * squared(rate)
@testset "model" begin
    @test_derivatives wrong(2.0, 3.0) order = 1
end
"""
"What a script prints, and whether it ends well, in a process of its own."
function output_of(script)
    mktempdir() do folder
        path, log = joinpath(folder, "tests.jl"), joinpath(folder, "log")
        write(path, script)
        package = joinpath(@__DIR__, "..", "..") * (Sys.iswindows() ? ";" : ":")
        environment = merge(Dict(ENV), Dict("JULIA_LOAD_PATH" => package))
        command = setenv(`$(Base.julia_cmd()) --startup-file=no $path`, environment)
        ended = Base.run(pipeline(ignorestatus(command); stdout = log, stderr = log))
        read(log, String), success(ended)
    end
end

@testset "wrong ones" begin
    printed, fine = output_of(SCRIPT)
    @test !fine
    @test occursin("tests.jl:6", printed)
    @test occursin("rate: JVP", printed) && occursin("rate: VJP", printed)
    @test occursin(r"ẏ -?\d.*by differences", printed) && occursin("derivatives of wrong", printed)
    @test !occursin("x: JVP: Test Failed", printed)
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

# Derivatives in a test set of `Test`.

"""
    @test_derivatives f(x...) option = value ...

A test set of what `check_derivatives(f, x...; option = value, ...)` compares, a test each. Needs
`using Test` where it stands.

    @testset "model" begin
        @test_derivatives loss(parameters, data) order = 1 rtol = 1e-8
    end

A failure has the argument or the part of it along which the derivative is wrong, and both numbers.
"""
macro test_derivatives(call, options...)
    iskeyword(a) = a isa Expr && a.head in (:kw, :parameters)
    call isa Expr && call.head === :call && !any(iskeyword, call.args) ||
        throw(ArgumentError("@test_derivatives takes a call without keywords, f(x, ...): $call"))
    all(o -> o isa Expr && o.head === :(=), options) ||
        throw(ArgumentError("after the call, @test_derivatives takes option = value"))
    isdefined(__module__, Symbol("@testset")) && isdefined(__module__, Symbol("@test")) ||
        throw(ArgumentError("@test_derivatives needs `using Test` in $__module__"))
    keywords = [Expr(:kw, o.args...) for o in options]
    report = Expr(:call, check_derivatives, Expr(:parameters, keywords...), call.args...)
    check = gensym("check")
    at_call(name, arguments...) = Expr(:macrocall, Symbol(name), __source__, arguments...)
    one = at_call("@testset", Expr(:string, :($title($check))),
        Expr(:block, at_call("@test", :($disagreement($check) == ""))))
    esc(at_call("@testset", "derivatives of $(call.args[1])",
        Expr(:block, :(for $check in $report.checks
            $one
        end))))
end

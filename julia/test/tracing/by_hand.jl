# The models of benchmarks/julia: traced gradients, at sizes at which loops are rolled up and not.

include("../support/tracing.jl")
include("../../../benchmarks/julia/models.jl")

@testset "$(m.name) of size $size" for m in MODELS, size in (m.small, 2 * m.small)
    x = arguments(m, size)
    untouched = deepcopy(x)
    wanted = m.gradient(x...)
    @test x == untouched                    # the one by hand works on copies
    found = gradient(m.f, x...)
    @test x == untouched
    @test length(found) == length(wanted) == length(x)
    @test all(u -> u[1] ≈ u[2], zip(found, wanted))
    @test trace(m.f, x...)(x...) ≈ m.f(x...)
end

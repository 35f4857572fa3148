@testset "defaults are compiled once, not for each primitive" begin
    isdefault(m) = (s = Base.unwrap_unionall(m.sig); length(s.parameters) > 1 &&
        s.parameters[2] === JaxprAD.Primitive && endswith(string(m.file), "interface.jl"))
    functions = [getfield(JaxprAD, n) for n in names(JaxprAD; all = true) if isdefined(JaxprAD, n)]
    defaults = unique(m for f in functions if f isa Function for m in methods(f) if isdefault(m))
    @test length(defaults) > 50
    # Kernels call these, of one reduction each.
    incode = (:lane, :to_lane, :combine_lanes, :from_lane)
    @test [m.name for m in defaults if iseven(m.nospecialize) && !(m.name in incode)] == []
end

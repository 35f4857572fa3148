# Which line an operation comes from.

using JaxprAD: HAS_UNWINDER, NEAR, innermost_frames, user_line, user_line_of

@noinline both() = (user_line(), user_line(backtrace()))
@noinline deep(n) = n == 0 ? both() : deep(n - 1)

@testset "the innermost frames are those of the whole stack" begin
    near, all = both()
    @test near == all && startswith(near, "sources.jl:5")
    near, all = deep(3NEAR)
    @test near == all && startswith(near, "sources.jl:5")
    @test !HAS_UNWINDER || length(innermost_frames()) <= NEAR
end

@testset "where the innermost frames have no code of the user's, the whole stack is looked at" begin
    @test user_line_of(backtrace()[1:0]) === nothing
    @test user_line(backtrace()[1:0]) == ""
end

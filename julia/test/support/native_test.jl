# The proof that code uses no heap, tested: functions that do must be found out.

allocates(n::Int) = [n]
throws(n::Int) = sqrt(Float64(n))
boxes(p::Ptr{Int}) = (r = Ref{Any}(unsafe_load(p)); unsafe_store!(p, 1); r[])
calls_what_throws(n::Int) = divides(n)
@noinline divides(n) = div(n, n - 1)
dispatches(p::Ptr{Int}) = (Any[+, -][unsafe_load(p)])(1, 2)
adds(p::Ptr{Int}) = unsafe_store!(p, unsafe_load(p) + 1)

@testset "the proof" begin
    for f in (allocates, throws, calls_what_throws)
        @test !heap_free(f, (Int,))
    end
    @test !heap_free(boxes, (Ptr{Int},))
    @test !heap_free(dispatches, (Ptr{Int},))
    @test heap_free(adds, (Ptr{Int},))
end

@testset "agreement" begin
    p, x = program("(%0: f64[3]) { %1: f64[3] = sin %0 return %1 }"), Any[[1.0, 2.0, 3.0]]
    other = JaxprAD.compile(program("(%0: f64[3]) { %1: f64[3] = cos %0 return %1 }"))
    @test native_agrees(p, x)
    @test !native_agrees(p, x; kernel = other)
end

# Code that would end the process is refused before it is registered, in memory and in files.

using JaxprAD: KernelRefused, check_calls, only_specialization, inferred_calls, compiled_calls

"Why the function, which has one method, is refused; empty if it is not."
refusal(f) =
    try
        check_calls(only_specialization(f))
        ""
    catch e
        e isa KernelRefused || rethrow()
        sprint(showerror, e)
    end

const llvmcall = Core.Intrinsics.llvmcall
throws(x::Float64) = x > 0 ? x : throw(DomainError(x))
has_no_method(x::Float64) = complex(x, x) < x
dispatches(x::Ptr{Any}) = (sin(unsafe_load(x)); nothing)
allocates(x::Int) = length(zeros(x))
may_not_fit(x::Int) = Int32(Int8(x))
misread(x::Float64) =
    llvmcall("%2 = fadd float %0, %0\nret double %2", Float64, Tuple{Float64}, x)
misdeclared(x::Float32) =
    llvmcall("%2 = fadd double %0, %0\nret double %2", Float64, Tuple{Float64}, x)
mixes(x::Float64, y::Float32) = Core.Intrinsics.add_float(x, y)
misplaces(x::Ptr{Float64}, y::Float32) = (Core.Intrinsics.pointerset(x, y, 1, 1); nothing)
calls_nothing(x::Float64) = ccall(:pybridge_has_none, Float64, (Float64,), x)

@testset "$f" for f in (throws, has_no_method, dispatches, allocates, may_not_fit, misread,
    misdeclared, mixes, misplaces, calls_nothing)

    @test inferred_calls(only_specialization(f)) === nothing
    @test occursin(r"it calls Julia's runtime, i?jl_|is nowhere|it comes where", refusal(f))
end

@noinline refused_inside(x::Float64) = x < 0 ? throw(x) : x
first_caller(x::Float64) = refused_inside(x)
second_caller(x::Float64) = refused_inside(x)
@testset "what a refused function calls is not taken as checked" begin
    @test all(f -> occursin("refused_inside", refusal(f)), (first_caller, second_caller))
end

@testset "what kernels have is not refused, by what is inferred alone" begin
    text = "(%0: f64[4,4], %1: f64[4,4]) { %2: f64[4,4] = sin %0 %3: f64[4,4] = mul %2 %1
      %4: f64[] = reduce_sum %3 {axes=[0, 1]} return %4 %3 }"
    definitions, _ = JaxprAD.kernel_code(program(text))
    for d in definitions
        f = JaxprAD.define(d, false)
        @test inferred_calls(only_specialization(f)) isa Vector
        @test isempty(first(compiled_calls(only_specialization(f))))
    end
end

# A function that is fine on numbers of 64 bits, and throws on others.
sixty_four(x::Float64) = 2x
sixty_four(x::Float32) = x > 0 ? 2x : throw(DomainError(x))
JaxprAD.@unary(:sixty_four, sixty_four; tangents = ((t, y, x) -> 2t,))

refused_program(T) = program("(%0: $T[3]) { %1: $T[3] = sin %0
  %2: $T[3] = sixty_four %1  # model.py:7 (f)
  %3: $T[3] = scan %2 {length=2, reverse=false, consts=0, carry=1, unroll=1, body=(%0: $T[3]) {
    %1: $T[3] = sixty_four %0 return %1 }}
  return %3 }")

@testset "a Program whose code throws is refused with its equation, $way" for (way, compiled) in (
    "in memory" => JaxprAD.compile,
    "in a file" => p -> mktempdir(d -> JaxprAD.write_kernel(p, joinpath(d, "kernel.o"))),
    "in a library" =>
        p -> mktempdir(d -> JaxprAD.write_library_object(p, joinpath(d, "library.o"), "f",
            JaxprAD.this_processor())))

    @test compiled(refused_program("f64")) !== nothing
    e = try
        compiled(refused_program("f32"))
    catch e
        e
    end
    @test e isa KernelRefused
    @test e.primitive == "sixty_four" && startswith(e.source, "model.py:7")
    @test startswith(sprint(showerror, e), "sixty_four: it ")
end

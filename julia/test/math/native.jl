# LLVM's code of the elementwise kernels, row by row: nothing in them allocates, throws or calls
# Julia's runtime, and loops over the important ones are vectors.

using InteractiveUtils, JaxprAD
const NumberMath = JaxprAD.NumberMath

llvm(f, types) = sprint(io -> code_llvm(io, f, Tuple{types...}; debuginfo = :none, raw = false))

"A function of NumberMath that is called rather than inlined, by LLVM's name of it, or nothing."
function own_function(name)
    m = match(r"^(?:j|julia)_(\w+?)_\d+$", name)
    f =
        m !== nothing && isdefined(NumberMath, Symbol(m[1])) ?
        getfield(NumberMath, Symbol(m[1])) : nothing
    f isa Function && parentmodule(f) === NumberMath ? f : nothing
end

"""
What bars `f` from threads that are not Julia's: exceptions, and calls but of LLVM's intrinsics and
of functions for which the same holds."""
function obstacles(f, types; seen = Set{Any}())
    text = llvm(f, types)
    # Older releases call their runtime through plain addresses.
    found = Any["calls a pointer" for _ in eachmatch(r"call [^@\n]*(?:inttoptr|%\w+)\s*\(", text)]
    occursin("unreachable", text) && push!(found, "throws")
    for m in eachmatch(r"call [^@\n]*@\"?([^\"(\s]+)\"?\(([^)\n]*)", text)
        startswith(m[1], "llvm.") && continue
        g = own_function(m[1])
        operands = [startswith(t, "double") ? Float64 : Int64
         for t in split(m[2], ", ") if !isempty(t)]
        g === nothing && push!(found, m[1])
        g === nothing || (g, operands) in seen ||
            append!(found, obstacles(g, operands; seen = push!(seen, (g, operands))))
    end
    found
end

const ATTRIBUTES = Dict(:round => [(method = 0,), (method = 1,)],
    :integer_pow => [(y = 3,), (y = -2,)],
    :reduce_precision =>
        [(exponent_bits = 5, mantissa_bits = 7)],
    :convert_element_type => [(dtype = name,) for (name, _) in JaxprAD.DTYPES])
"Operand dtypes to try; half precision is computed in single."
signatures(op, T) =
    op.name === :select_n ? [(Bool, T, T), (Int32, T, T, T), (UInt64, T, T, T)] :
    op.name === :pow ? [(T, T), (T, Int32), (T, UInt64)] :
    [ntuple(_ -> T, op.arity)]
const FULL_DTYPES = [T for (_, T) in JaxprAD.DTYPES if sizeof(T) != 2 || T <: Integer]

"A loop as native kernels have them."
function loop!(f, y::Ptr{T}, x::Ptr{T}, n) where {T}
    @simd ivdep for i in 1:n
        unsafe_store!(y, f(unsafe_load(x, i)), i)
    end
end
halves(f) = (@inline g(x) = f(x, oftype(x, 0.5)); g)
vectorises(f, T) =
    occursin(
        T === Float32 ? r"f(mul|sub|add|div) (contract )?<(8|16) x float>" :
        r"f(mul|sub|add|div) (contract )?<(4|8) x double>",
        llvm(loop!, (typeof(f), Ptr{T}, Ptr{T}, Int)))

"""
Whether Julia compiles for AVX2. An old one leaves it out on some processors that are newer than it
(`--cpu-target` tells it), and then `fma` is a call, and there are no vectors worth the name."""
has_avx2() =
    Sys.ARCH === :x86_64 && Base.JLOptions().opt_level >= 2 && vectorises(x -> x * x, Float32)

if has_avx2()
    rows = sort!(Any[op for op in OWN_PRIMITIVES if op isa JaxprAD.Elementwise]; by = JaxprAD.name)
    @testset "$(op.name)" for op in rows
        for T in FULL_DTYPES, attrs in get(ATTRIBUTES, op.name, [NamedTuple()]),
            types in signatures(op, T)

            op.accepts(types...; attrs...) && JaxprAD.isnative(op, types...; attrs...) || continue
            found = obstacles(JaxprAD.kernel(op, attrs), types)
            @test (types, attrs, found) == (types, attrs, [])
        end
    end

    # Around a kernel numbers are converted, those of half precision for one; no call in that loop
    # may box them either.
    @testset "a loop of $op $T" for op in (:add, :sin, :pow, :atan2, :clamp, :igamma,
            :regularized_incomplete_beta), T in (:f16, :bf16, :f32)
        operands = 0:JaxprAD.primitive(op).arity-1
        text = string("pybridge 1\nprogram p(", join(("%$k: $T[9]" for k in operands), ", "), ") {
          %9: $T[9] = $op ",
            join(("%$k" for k in operands), " "), " return %9 }")
        definitions, _ = JaxprAD.kernel_code(JaxprAD.parse_program(text))
        kernels = [Core.eval(JaxprAD.Kernels, d) for d in definitions]
        @test (op,
            filter(startswith("jl_"),
                obstacles(last(kernels), (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid})))) ==
              (op, [])
    end

    @testset "the proof fails where it should" begin
        @test !isempty(obstacles(sqrt, (Float64,))) && !isempty(obstacles(sin, (Float32,))) &&
              !isempty(obstacles(div, (Int32, Int32)))
        @test !isempty(obstacles(x -> [x], (Float64,))) &&
              !isempty(obstacles(x -> trunc(Int32, x), (Float32,)))
        @test !isempty(obstacles(x -> ccall(:lgamma, Float64, (Float64,), x), (Float64,)))
    end

    @testset "vectors of $name" for name in (:exp, :exp2, :expm1, :log, :log2, :log1p, :logistic,
        :tanh, :sin_near, :cos_near, :tan_near, :sinh, :cosh, :asin, :acos, :atan, :asinh, :acosh,
        :atanh, :rsqrt, :erf, :erfc, :erf_inv)
        f = getfield(NumberMath, name)
        @test vectorises(f, Float32) && vectorises(f, Float64)
    end
    @testset "vectors of wider ones" begin
        @test vectorises(halves(NumberMath.atan2), Float32) &&
              vectorises(halves(NumberMath.atan2), Float64)
        @test vectorises(halves(NumberMath.pow), Float64) && vectorises(NumberMath.cbrt, Float64) &&
              vectorises(NumberMath.sin, Float64)
        @test !vectorises(Base.exp, Float32) && !vectorises(x -> NumberMath.rem(x, 3.0f0), Float32)
    end
    @testset "sin and cos share their reduction" begin
        multiplications(f) =
            length(collect(eachmatch(r"= fmul|= call float @llvm.fma", llvm(f, (Float32,)))))
        apart = multiplications(NumberMath.sin_near) + multiplications(NumberMath.cos_near)
        @test 0 < multiplications(x -> NumberMath.sin_near(x) - NumberMath.cos_near(x)) <= 0.6apart
    end
else
    @info "math/native: needs a Julia that compiles for AVX2, with -O2 or more, to see vectors"
end

# Vectors of numbers in a register, for loops that no compiler makes vectors of by itself. A product
# and a sum become one instruction where they can ("contract").

struct Vec{N}
    lanes::NTuple{N,VecElement{Float64}}
end

Vec{N}(x::Real) where {N} = Vec{N}(ntuple(_ -> VecElement(Float64(x)), Val(N)))
vector(xs::Float64...) = Vec{length(xs)}(map(VecElement, xs))
Base.getindex(a::Vec, i) = a.lanes[i].value
Base.zero(::Type{Vec{N}}) where {N} = Vec{N}(0.0)
Base.sum(a::Vec{N}) where {N} = sum(map(x -> x.value, a.lanes))

const LLVM = Dict(:+ => "fadd contract", :- => "fsub contract", :* => "fmul contract", :/ => "fdiv")

for (operator, instruction) in LLVM
    @eval begin
        @generated function Base.$operator(a::Vec{N}, b::Vec{N}) where {N}
            code = "%r = $($instruction) <$N x double> %0, %1\nret <$N x double> %r"
            lanes = NTuple{N,VecElement{Float64}}
            quote
                $(Expr(:meta, :inline))
                Vec{N}(Base.llvmcall($code, $lanes, Tuple{$lanes,$lanes}, a.lanes, b.lanes))
            end
        end
        @inline Base.$operator(a::Vec{N}, b::Real) where {N} = $operator(a, Vec{N}(b))
        @inline Base.$operator(a::Real, b::Vec{N}) where {N} = $operator(Vec{N}(a), b)
    end
end
@inline Base.:-(a::Vec) = 0.0 - a
@inline Base.muladd(a::Vec, b, c) = a * b + c

@generated function Base.sqrt(a::Vec{N}) where {N}
    lanes = NTuple{N,VecElement{Float64}}
    quote
        $(Expr(:meta, :inline))
        Vec{N}(ccall($("llvm.sqrt.v$(N)f64"), llvmcall, $lanes, ($lanes,), a.lanes))
    end
end

"The lanes `order`, counted from 0."
@generated function shuffled(a::Vec{N}, ::Val{order}) where {N,order}
    mask = join(("i32 $k" for k in order), ", ")
    code = """%r = shufflevector <$N x double> %0, <$N x double> undef, <$N x i32> <$mask>
              ret <$N x double> %r"""
    lanes = NTuple{N,VecElement{Float64}}
    quote
        $(Expr(:meta, :inline))
        Vec{N}(Base.llvmcall($code, $lanes, Tuple{$lanes}, a.lanes))
    end
end

# Memory: elements i to i + N - 1 of an array.

@inline load(::Type{Vec{N}}, a::Array{Float64}, i) where {N} =
    GC.@preserve a unsafe_load(Ptr{Vec{N}}(pointer(a, i)))
@inline store!(a::Array{Float64}, i, v::Vec{N}) where {N} =
    GC.@preserve a unsafe_store!(Ptr{Vec{N}}(pointer(a, i)), v)

# Functions. Both take finite numbers whose result is no subnormal one.

const TURNS = 1.4426950408889634  # 1 / log(2)
const LOG2_HIGH, LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
const ROUNDING = 6755399441055744.0  # 1.5 * 2^52: the sum's last bits are the rounded number

"y * 2^k, where k is in the last bits of `shifted`."
@generated function scaled(y::Vec{N}, shifted::Vec{N}) where {N}
    places = join(fill("i64 52", N), ", ")
    code = """%y = bitcast <$N x double> %0 to <$N x i64>
              %k = bitcast <$N x double> %1 to <$N x i64>
              %e = shl <$N x i64> %k, <$places>
              %s = add <$N x i64> %y, %e
              %r = bitcast <$N x i64> %s to <$N x double>
              ret <$N x double> %r"""
    lanes = NTuple{N,VecElement{Float64}}
    quote
        $(Expr(:meta, :inline))
        Vec{N}(Base.llvmcall($code, $lanes, Tuple{$lanes,$lanes}, y.lanes, shifted.lanes))
    end
end

"Taylor's polynomial within half of log(2), in pairs whose products do not wait for each other."
@inline function Base.exp(x::Vec)
    shifted = x * TURNS + ROUNDING
    k = shifted - ROUNDING
    r = x - k * LOG2_HIGH - k * LOG2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    scaled(low + r4 * (middle + r4 * (high + r4 * (1 / 479001600))), shifted)
end

"x = m * 2^e with m between 0.75 and 1.5, and log(m) = 2 atanh((m - 1) / (m + 1)) by its series."
@inline function Base.log(x::Vec{N}) where {N}
    m, e = split_exponent(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = evalpoly(z, ntuple(k -> 2 / (2k + 1), Val(11)))
    e * LOG2_HIGH + (2.0 * s + (s * z * series + e * LOG2_LOW))
end

@generated function split_exponent(x::Vec{N}) where {N}
    constant(n) = "<" * join(fill("i64 $n", N), ", ") * ">"
    # Bits of 0.75, whose distance in exponents from x is e.
    declared = "%x = bitcast <$N x double> %0 to <$N x i64>
                %d = sub <$N x i64> %x, $(constant(reinterpret(Int64, 0.75)))
                %e = ashr <$N x i64> %d, $(constant(52))\n"
    mantissa = declared * "%s = shl <$N x i64> %e, $(constant(52))
                %m = sub <$N x i64> %x, %s
                %r = bitcast <$N x i64> %m to <$N x double>
                ret <$N x double> %r"
    exponent = declared * "%r = sitofp <$N x i64> %e to <$N x double>
                ret <$N x double> %r"
    lanes = NTuple{N,VecElement{Float64}}
    quote
        $(Expr(:meta, :inline))
        Vec{N}(Base.llvmcall($mantissa, $lanes, Tuple{$lanes}, x.lanes)),
        Vec{N}(Base.llvmcall($exponent, $lanes, Tuple{$lanes}, x.lanes))
    end
end

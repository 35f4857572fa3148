# Whether what a source means depends on its text alone, so that what was made of it can be kept for
# other processes. All names in it that Base or a package defines must be on the lists here: what
# reads files, the environment, clocks or random numbers is not, nor what reaches other code by a
# name that is computed.

"Of Base, with one meaning wherever they run."
const PURE_NAMES = Set{Symbol}(
    Symbol.(
        split("""
! != !== % & * + - / // : < <= == => > >= >> >>> << <: >: \\ ^ | |> ~ ÷ ∈ ∉ ∋ ∌ ∘ √ ∛ ∩ ∪ ≈ ≉ ≠ ≡
≢ ≤ ≥ ⊆ ⊻ π ℯ Inf Inf16 Inf32 Inf64 NaN NaN16 NaN32 NaN64 im pi nothing missing end
AbstractArray AbstractDict AbstractFloat AbstractIrrational AbstractMatrix AbstractRange AbstractSet
AbstractString AbstractUnitRange AbstractVecOrMat AbstractVector Any ArgumentError Array Bool
BoundsError CartesianIndex CartesianIndices Colon Complex ComplexF16 ComplexF32 ComplexF64
DenseMatrix DenseVector Dict DimensionMismatch Dims DomainError ErrorException Float16 Float32
Float64 Function Int Int16 Int32 Int64 Int8 Integer Irrational Iterators LinRange LinearIndices
Matrix Missing NTuple NamedTuple Nothing Number Pair PermutedDimsArray Rational Real Ref RoundDown
RoundNearest RoundToZero RoundUp Set Signed Some StepRange StepRangeLen StridedArray StridedMatrix
StridedVector String SubArray Symbol Tuple Type UInt UInt16 UInt32 UInt64 UInt8 Union UnitRange
Unsigned Val VecOrMat Vector
abs abs2 accumulate accumulate! acos acosd acosh acot acoth acsc acsch adjoint all angle any append!
argmax argmin asec asech asin asind asinh atan atand atanh axes binomial broadcast broadcast! cat
cbrt ceil circshift circshift! cis clamp clamp! cld cmp coalesce collect complex conj conj! convert
copy copy! copysign copyto! cos cosc cosd cosh cospi cot coth count csc csch cumprod cumprod! cumsum
cumsum! deepcopy deg2rad delete! deleteat! denominator diff digits div divrem dropdims eachcol
eachindex eachrow eachslice eltype empty empty! enumerate eps error evalpoly exp exp10 exp2 expm1
exponent extrema factorial falses fill fill! filter filter! findall findfirst findlast findmax
findmin findnext findprev first firstindex fld fld1 fldmod flipsign float floatmax floatmin floor
fma foldl foldr foreach gcd get getindex haskey hcat hvcat hypot identity ifelse imag in insert!
intersect inv invmod invperm isa isapprox isassigned isempty isequal iseven isfinite isinf isinteger
isless ismissing isnan isnothing isodd isone isperm isreal issorted issubset iszero iterate keys
keytype kron last lastindex lcm ldexp length log log10 log1p log2 map map! mapfoldl mapfoldr
mapreduce mapslices max maximum maximum! maxintfloat merge min minimum minimum! minmax mod mod1
mod2pi modf muladd ndims nextfloat nextpow ntuple numerator oftype one ones oneunit only pairs
parent parentindices permutedims permutedims! pop! popfirst! powermod precision prepend! prevfloat
prevpow prod prod! promote promote_rule promote_type push! pushfirst! rad2deg range rationalize real
reduce reim reinterpret rem repeat replace replace! reshape resize! reverse reverse! rot180 rotl90
rotr90 round searchsorted searchsortedfirst searchsortedlast sec sech selectdim setdiff setindex!
sign signbit signed significand similar sin sinc sincos sincosd sincospi sind sinh sinpi size
sizehint! sort sort! sortperm sortperm! splice! sqrt step stride strides string sum sum! tan tand
tanh throw transpose trues trunc tuple typeassert typemax typemin typeof union unique unsigned
valtype values vcat vec view widen xor zero zeros zip
""")
    )
)
const PURE_MACROS = Set{Symbol}(
    Symbol.(
        split("@inbounds @simd @inline @noinline @views @view @. @__dot__ @assert @doc @evalpoly"))
)
const PURE_TRANSFORMS = (:select, :while_loop, :scan, :cond, :gradient, :value_and_gradient,
    :jacobian, :hessian, :hvp, :jvp, :vjp, :linearize, :linear_transpose, :vmap)
"What is pure of the packages that a source may use."
const PURE_PACKAGES = Dict{Symbol,Set{Symbol}}(
    :LinearAlgebra =>
        setdiff!(Set(names(LinearAlgebra)), (:LinearAlgebra, :BLAS, :LAPACK, :peakflops)),
    :JaxprAD => Set{Symbol}(PURE_TRANSFORMS))

"Whether what the described function does depends on the description alone."
selfcontained(d::Description) =
    first(source(d)) in ("file", "code") && selfcontained(d.code)
selfcontained(code::AbstractString) =
    ispure(Meta.parse(string("begin\n", code, "\nend"); raise = false))

ispure(x) = true
ispure(x::QuoteNode) = ispure(x.value)
ispure(x::GlobalRef) = x.name === Symbol("@doc")
ispure(n::Symbol) =
    startswith(string(n), "@") ? n in PURE_MACROS :
    n in PURE_NAMES || any(names -> n in names, values(PURE_PACKAGES)) || isown(n)
function ispure(x::Expr)
    x.head in (:error, :incomplete) && return false
    x.head in (:using, :import) && return all(ispure_import, x.args)
    # LinearAlgebra.norm
    x.head === :. && length(x.args) == 2 && x.args[1] isa Symbol &&
        haskey(PURE_PACKAGES, x.args[1]) && x.args[2] isa QuoteNode &&
        return x.args[2].value in PURE_PACKAGES[x.args[1]]
    x.head !== :module && all(ispure, x.args)
end
ispure_import(x) = false
function ispure_import(x::Expr)
    x.head === :. && return length(x.args) == 1 && haskey(PURE_PACKAGES, x.args[1])
    x.head === :(:) && ispure_import(x.args[1]) &&
        all(path -> path.args[end] in PURE_PACKAGES[x.args[1].args[1]], x.args[2:end])
end

"Whether a name can be but the source's own: no module that it sees defines it."
isown(n::Symbol) =
    !(n in (:ccall, :cglobal)) &&
    !any(m -> isdefined(m, n), (Base, Core, LinearAlgebra)) &&
    !(n in names(parentmodule(@__MODULE__)))

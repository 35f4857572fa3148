# Calls of BLAS and LAPACK, by address. `area` is memory for what Fortran takes by reference.

using LinearAlgebra: BlasInt

const FORTRAN_ARGUMENTS = 16 * 28

@inline by_reference(area::Ptr{UInt8}, k, x::Ptr) = Ptr{Cvoid}(x)
@inline by_reference(area::Ptr{UInt8}, k, x::Int) = by_reference_(area, k, x % BlasInt)
@inline by_reference(area::Ptr{UInt8}, k, x::Number) = by_reference_(area, k, x)
@inline by_reference(area::Ptr{UInt8}, k, x::Char) = by_reference_(area, k, reinterpret(UInt32, x) >> 24 % UInt8)
@inline by_reference_(area, k, x::T) where {T} = (p = Ptr{T}(area + 16k); unsafe_store!(p, x); Ptr{Cvoid}(p))

@inline info_at(area::Ptr{UInt8}) = Ptr{BlasInt}(area)
"Calls f with these arguments; LAPACK's own report, its last argument, is `info_at(area)`."
@inline fortran(f::Ptr{Cvoid}, area::Ptr{UInt8}, x...) = fortran_call(f, area, x)
@generated function fortran_call(f::Ptr{Cvoid}, area::Ptr{UInt8}, x::Tuple)
    n = length(x.parameters)
    types = Expr(:tuple, (:(Ptr{Cvoid}) for _ in 1:n)...)
    quote
        $(Expr(:meta, :inline))
        f == C_NULL && return nothing       # it never is; but `ccall` would look, and throw
        ccall(f, Cvoid, $types, $((:(by_reference(area, $k, x[$k])) for k in 1:n)...))
        nothing
    end
end
@inline function lapack(f, area, x...)
    fortran(f, area, x..., info_at(area))
    unsafe_load(info_at(area)) % Int
end

# Real and complex routines differ in a few arguments.
const RealElement = Union{Float32,Float64}

"C = op(A) op(B), column after column, with m × n × k numbers multiplied."
@noinline function gemm!(f::Ptr{Cvoid}, area::Ptr{UInt8}, transa::UInt8, transb::UInt8, m::Int, n::Int, k::Int, a::Ptr{T}, lda::Int, b::Ptr{T}, ldb::Int, c::Ptr{T}, ldc::Int) where {T}
    fortran(f, area, transa, transb, m, n, k, one(T), a, max(lda, 1), b, max(ldb, 1), zero(T), c, max(ldc, 1))
end

trsm!(f, area, side, triangle, trans, diagonal, m, n, a::Ptr{T}, lda, b::Ptr{T}) where {T} =
    fortran(f, area, side, triangle, trans, diagonal, m, n, one(T), a, lda, b, m)
potrf!(f, area, n, a) = lapack(f, area, 'U', n, a, n)
getrf!(f, area, m, n, a, pivots) = lapack(f, area, m, n, a, m, pivots)
gtsv!(f, area, n, columns, dl, d, du, b) = lapack(f, area, n, columns, dl, d, du, b, n)
geqrf!(f, area, m, n, a, scales, work, lwork) = lapack(f, area, m, n, a, m, scales, work, lwork)
orgqr!(f, area, m, n, k, a, scales, work, lwork) = lapack(f, area, m, n, k, a, m, scales, work, lwork)
ormqr!(f, area, side, trans, m, n, k, a, lda, scales, c, work, lwork) = lapack(f, area, side, trans, m, n, k, a, lda, scales, c, m, work, lwork)
sytrd!(f, area, triangle, n, a, d, e, scales, work, lwork) = lapack(f, area, triangle, n, a, n, d, e, scales, work, lwork)
geqp3!(f, area, m, n, a::Ptr{<:RealElement}, order, scales, work, lwork, rwork) = lapack(f, area, m, n, a, m, order, scales, work, lwork)
geqp3!(f, area, m, n, a::Ptr{<:Complex}, order, scales, work, lwork, rwork) = lapack(f, area, m, n, a, m, order, scales, work, lwork, rwork)
gehrd!(f, area, n, a, scales, work, lwork) = lapack(f, area, n, 1, n, a, n, scales, work, lwork)

syevr!(f, area, triangle, n, a::Ptr{T}, w, z, support, work, lwork, rwork, lrwork, iwork, liwork) where {T<:RealElement} =
    lapack(f, area, 'V', 'A', triangle, n, a, n, zero(T), zero(T), 0, 0, -one(T), info_at(area) + 8, w, z, n, support, work, lwork, iwork, liwork)
syevr!(f, area, triangle, n, a::Ptr{Complex{R}}, w, z, support, work, lwork, rwork, lrwork, iwork, liwork) where {R} =
    lapack(f, area, 'V', 'A', triangle, n, a, n, zero(R), zero(R), 0, 0, -one(R), info_at(area) + 8, w, z, n, support, work, lwork, rwork, lrwork, iwork, liwork)

gesdd!(f, area, job, m, n, a::Ptr{<:RealElement}, s, u, ldu, v, ldv, work, lwork, rwork, iwork) =
    lapack(f, area, job, m, n, a, m, s, u, ldu, v, ldv, work, lwork, iwork)
gesdd!(f, area, job, m, n, a::Ptr{<:Complex}, s, u, ldu, v, ldv, work, lwork, rwork, iwork) =
    lapack(f, area, job, m, n, a, m, s, u, ldu, v, ldv, work, lwork, rwork, iwork)

geev!(f, area, left, right, n, a::Ptr{<:RealElement}, w, u, v, work, lwork, rwork) =
    lapack(f, area, left, right, n, a, n, rwork, rwork + n * sizeof(eltype(a)), u, n, v, n, work, lwork)
geev!(f, area, left, right, n, a::Ptr{<:Complex}, w, u, v, work, lwork, rwork) =
    lapack(f, area, left, right, n, a, n, w, u, n, v, n, work, lwork, rwork)

gees!(f, area, job, n, a::Ptr{<:RealElement}, w, z, work, lwork, rwork) =
    lapack(f, area, job, 'N', C_NULL, n, a, n, info_at(area) + 8, rwork, rwork + n * sizeof(eltype(a)), z, n, work, lwork, C_NULL)
gees!(f, area, job, n, a::Ptr{<:Complex}, w, z, work, lwork, rwork) =
    lapack(f, area, job, 'N', C_NULL, n, a, n, info_at(area) + 8, w, z, n, work, lwork, rwork, C_NULL)

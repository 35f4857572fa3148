# Calls of BLAS and LAPACK, by address. `area` is memory for what Fortran takes by reference.

using LinearAlgebra: BlasInt

const FORTRAN_ARGUMENTS = 16 * 28

@inline by_reference(area::Ptr{UInt8}, k, x::Ptr) = Ptr{Cvoid}(x)
@inline by_reference(area::Ptr{UInt8}, k, x::Int) = by_reference_(area, k, x % BlasInt)
@inline by_reference(area::Ptr{UInt8}, k, x::Number) = by_reference_(area, k, x)
@inline by_reference(area::Ptr{UInt8}, k, x::Char) =
    by_reference_(area, k, reinterpret(UInt32, x) >> 24 % UInt8)
@inline by_reference_(area, k, x::T) where {T} =
    (p = Ptr{T}(area + 16k); unsafe_store!(p, x); Ptr{Cvoid}(p))

@inline info_at(area::Ptr{UInt8}) = Ptr{BlasInt}(area)
"Calls f with these arguments; LAPACK's own report, its last argument, is `info_at(area)`."
@inline fortran(f::Ptr{Cvoid}, area::Ptr{UInt8}, x...) = fortran_call(f, area, x)
@generated function fortran_call(f::Ptr{Cvoid}, area::Ptr{UInt8}, x::Tuple)
    arguments = (:(by_reference(area, $k, x[$k])::Ptr{Cvoid}) for k in 1:length(x.parameters))
    quote
        $(Expr(:meta, :inline))
        @call_address f($(arguments...))::Cvoid
    end
end

"A routine of LAPACK or BLAS by its address, and the area for its arguments."
struct Lapack
    routine::Ptr{Cvoid}
    area::Ptr{UInt8}
end
@inline info_at(f::Lapack) = info_at(f.area)
@inline function (f::Lapack)(x...)
    fortran(f.routine, f.area, x..., info_at(f))
    unsafe_load(info_at(f)) % Int
end

"""
Memory for so many numbers that a routine of LAPACK works in; by the length -1 it is asked
how many it wants."""
struct Room{T}
    pointer::Ptr{T}
    length::Int
end

"""
A triangle of a square matrix, how it is meant (BLAS' `transa` and `diag`), and the
side it stands on."""
struct Triangle
    side::Char
    uplo::Char
    trans::Char
    diagonal::Char
    conjugate::Bool
end

# Real and complex routines differ in a few arguments.
const RealElement = Union{Float32,Float64}

"A factor of a product: columns `leading` numbers apart in memory, and whether it is transposed."
struct Factor{T}
    pointer::Ptr{T}
    leading::Int
    transposed::Bool
end
@inline operation(a::Factor) = a.transposed ? 'T' : 'N'

"C = op(A) op(B), column after column, with m × n × k numbers multiplied."
@noinline function gemm!(f::Lapack, m::Int, n::Int, k::Int, a::Factor{T}, b::Factor{T}, c::Ptr{T},
    leading::Int) where {T}
    fortran(f.routine, f.area, operation(a), operation(b), m, n, k, one(T), a.pointer,
        max(a.leading, 1), b.pointer, max(b.leading, 1), zero(T), c, max(leading, 1))
end

function trsm!(f::Lapack, t::Triangle, m, n, a::Ptr{T}, lda, b::Ptr{T}) where {T}
    fortran(f.routine, f.area, t.side, t.uplo, t.trans, t.diagonal, m, n, one(T), a, lda, b, m)
end
potrf!(f, n, a) = f('U', n, a, n)
getrf!(f, m, n, a, pivots) = f(m, n, a, m, pivots)
gtsv!(f, n, columns, dl, d, du, b) = f(n, columns, dl, d, du, b, n)
geqrf!(f, m, n, a, scales, work) = f(m, n, a, m, scales, work.pointer, work.length)
orgqr!(f, m, n, k, a, scales, work) = f(m, n, k, a, m, scales, work.pointer, work.length)
ormqr!(f, side, trans, m, n, k, a, lda, scales, c, work) =
    f(side, trans, m, n, k, a, lda, scales, c, m, work.pointer, work.length)
sytrd!(f, triangle, n, a, d, e, scales, work) =
    f(triangle, n, a, n, d, e, scales, work.pointer, work.length)
geqp3!(f, m, n, a::Ptr{<:RealElement}, order, scales, work, rwork) =
    f(m, n, a, m, order, scales, work.pointer, work.length)
geqp3!(f, m, n, a::Ptr{<:Complex}, order, scales, work, rwork) =
    f(m, n, a, m, order, scales, work.pointer, work.length, rwork)
gehrd!(f, n, a, scales, work) = f(n, 1, n, a, n, scales, work.pointer, work.length)

function syevr!(f, triangle, n, a::Ptr{T}, w, z, support, work, rwork, iwork) where {T<:RealElement}
    f('V', 'A', triangle, n, a, n, zero(T), zero(T), 0, 0, -one(T), info_at(f) + 8, w, z, n,
        support, work.pointer, work.length, iwork.pointer, iwork.length)
end
function syevr!(f, triangle, n, a::Ptr{Complex{R}}, w, z, support, work, rwork, iwork) where {R}
    f('V', 'A', triangle, n, a, n, zero(R), zero(R), 0, 0, -one(R), info_at(f) + 8, w, z, n,
        support, work.pointer, work.length, rwork.pointer, rwork.length, iwork.pointer,
        iwork.length)
end

gesdd!(f, job, m, n, a::Ptr{<:RealElement}, s, u, v, ldv, work, rwork, iwork) =
    f(job, m, n, a, m, s, u, m, v, ldv, work.pointer, work.length, iwork)
gesdd!(f, job, m, n, a::Ptr{<:Complex}, s, u, v, ldv, work, rwork, iwork) =
    f(job, m, n, a, m, s, u, m, v, ldv, work.pointer, work.length, rwork, iwork)

geev!(f, left, right, n, a::Ptr{T}, w, u, v, work, rwork) where {T<:RealElement} =
    f(left, right, n, a, n, rwork, rwork + n * sizeof(T), u, n, v, n, work.pointer, work.length)
geev!(f, left, right, n, a::Ptr{<:Complex}, w, u, v, work, rwork) =
    f(left, right, n, a, n, w, u, n, v, n, work.pointer, work.length, rwork)

gees!(f, job, n, a::Ptr{T}, w, z, work, rwork) where {T<:RealElement} =
    f(job, 'N', C_NULL, n, a, n, info_at(f) + 8, rwork, rwork + n * sizeof(T), z, n,
        work.pointer, work.length, C_NULL)
gees!(f, job, n, a::Ptr{<:Complex}, w, z, work, rwork) =
    f(job, 'N', C_NULL, n, a, n, info_at(f) + 8, w, z, n, work.pointer, work.length, rwork, C_NULL)

# Factorizations of batches of matrices. Programs hold them row after row, LAPACK takes them column
# after column; half precision is computed in single. Where LAPACK gives up, or numbers are infinite
# or NaN that it would not end with, the results are NaN. `w`, also with letters before it, are
# copies that LAPACK works on.

"The rows × columns matrix at `from` for LAPACK, whose columns are `apart`."
@inline function take!(to::Ptr, from::Ptr, rows, columns, apart = rows)
    for i in 0:rows-1, j in 0:columns-1
        put!(to, at(from, i * columns + j), j * apart + i)
    end
end
"LAPACK's matrix, whose columns are `apart`, as rows; `kept(i, j)` tells where it is not zero."
@inline function give!(kept::F, to::Ptr{T}, from::Ptr, rows, columns, apart) where {F,T}
    for i in 0:rows-1, j in 0:columns-1
        put!(to, kept(i, j) ? stored(T, at(from, j * apart + i)) : zero(T), i * columns + j)
    end
end
@inline give!(to::Ptr, from, rows, columns, apart) =
    give!((i, j) -> true, to, from, rows, columns, apart)
@inline function give_vector!(f::F, to::Ptr, from::Ptr, n) where {F}
    for i in 0:n-1
        put!(to, f(at(from, i)), i)
    end
end
@inline give_vector!(to::Ptr, from::Ptr, n) = give_vector!(identity, to, from, n)
@inline function fill_nan!(to::Ptr{T}, n) where {T}
    for i in 0:n-1
        put!(to, stored(T, stored(real(T), NaN)), i)
    end
end
@inline function all_finite(p::Ptr, n)
    ok = true
    for i in 0:n-1
        ok &= finite(at(p, i))
    end
    ok
end
@inline finite(x::Real) = x - x == 0
@inline finite(x::Complex) = finite(real(x)) & finite(imag(x))
@inline nth(p::Ptr{T}, k, n) where {T} = p + k * n * sizeof(T)

# As LAPACK sees it, op(A) X = B is Xᵀ op(Aᵀ) = Bᵀ: the triangle is on the other side, and in the
# other half of its matrix.
@noinline function triangular_solve!(trsm::Lapack, y::Ptr{T}, a::Ptr{T}, b::Ptr{T},
    (wa, wx)::NTuple{2,Ptr{A}}, t::Triangle, batches::Int, k::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        to, triangle = nth(y, i, m * n), nth(a, i, k * k)
        x = T === A ? to : wx
        give_vector!(x, nth(b, i, m * n), m * n)
        if T === A && !t.conjugate
            trsm!(trsm, t, n, m, triangle, k, x)
        else
            t.conjugate ? give_vector!(conj, wa, triangle, k * k) :
            give_vector!(identity, wa, triangle, k * k)
            trsm!(trsm, t, n, m, wa, k, x)
        end
        T === A || give_vector!(to, x, m * n)
    end
end

# A row-major lower triangle is a column-major upper one: of A as LAPACK sees it, Aᵀ = conj(A), it
# makes U with Uᴴ U = Aᵀ, and L = Uᵀ. LAPACK stops at a pivot that is NaN; some versions of OpenBLAS
# go on, with zeros and ones after it.
@noinline function cholesky!(potrf::Lapack, y::Ptr{T}, x::Ptr{T}, w::Ptr{A}, batches::Int,
    n::Int) where {T,A}
    for k in 0:batches-1
        to = nth(y, k, n * n)
        give_vector!(w, nth(x, k, n * n), n * n)
        !has_nan(w, n) && potrf!(potrf, n, w) == 0 && !has_nan(w, n) || fill_nan!(w, n * n)
        for i in 0:n-1, j in 0:n-1
            put!(to, j <= i ? stored(T, at(w, i * n + j)) : zero(T), i * n + j)
        end
    end
end

"Whether something is NaN that is read of a Hermitian matrix: of its diagonal, the real part."
@inline function has_nan(p::Ptr, n)
    found = false
    for i in 0:n-1
        for j in 0:i-1
            x = at(p, i * n + j)
            found |= x != x
        end
        pivot = real(at(p, i * (n + 1)))
        found |= pivot != pivot
    end
    found
end

@noinline function lu!(getrf::Lapack, y::Ptr{T}, pivots::Ptr{Int32}, permutation::Ptr{Int32},
    x::Ptr{T}, w::Ptr{A}, exchanges::Ptr{BlasInt}, batches::Int, m::Int, n::Int) where {T,A}
    small = min(m, n)
    for k in 0:batches-1
        take!(w, nth(x, k, m * n), m, n)
        small == 0 || getrf!(getrf, m, n, w, exchanges)
        give!(nth(y, k, m * n), w, m, n, m)
        for i in 0:small-1
            put!(nth(pivots, k, small), at(exchanges, i) - 1, i)
        end
        permutation_of!(nth(permutation, k, m), nth(pivots, k, small), m, small)
    end
end

"The same for small real matrices, row by row: calls of LAPACK would take most of the time."
@noinline function eliminate!(y::Ptr{T}, pivots::Ptr{Int32}, permutation::Ptr{Int32}, x::Ptr{T},
    batches::Int, m::Int, n::Int) where {T}
    small = min(m, n)
    give_vector!(y, x, batches * m * n)
    for b in 0:batches-1
        z = nth(y, b, m * n)
        for k in 0:small-1
            pivot = largest_below(z, k, m, n)
            put!(nth(pivots, b, small), pivot, k)
            pivot == k || exchange_rows!(nth(z, pivot, n), nth(z, k, n), n)
            # where the largest is zero, there is nothing to eliminate
            at(z, k * (n + 1)) == 0 || for i in k+1:m-1
                factor = at(z, i * n + k) / at(z, k * (n + 1))
                put!(z, factor, i * n + k)
                @vector for j in k+1:n-1
                    put!(z, muladd(-factor, at(z, k * n + j), at(z, i * n + j)), i * n + j)
                end
            end
        end
        permutation_of!(nth(permutation, b, m), nth(pivots, b, small), m, small)
    end
end
"The row from k on, of m, with the number of largest magnitude in column k; the first of equals."
@inline function largest_below(z::Ptr, k, m, n)
    row, largest = k, abs(at(z, k * (n + 1)))
    for i in k+1:m-1
        here = abs(at(z, i * n + k))
        row, largest = ifelse(here > largest, i, row), ifelse(here > largest, here, largest)
    end
    row
end
@inline function exchange_rows!(a::Ptr, b::Ptr, n)
    @vector for j in 0:n-1
        u, v = at(a, j), at(b, j)
        put!(a, v, j)
        put!(b, u, j)
    end
end

"As `permutation_of` in the rule: pivots of a user's own may be out of range."
@inline function permutation_of!(rows::Ptr{Int32}, pivots::Ptr{Int32}, m, n)
    for i in 0:m-1
        put!(rows, i, i)
    end
    for i in 0:n-1
        pivot = at(pivots, i) % Int
        p = ifelse(pivot < 0, pivot + m, pivot)
        q = min(max(p, 0), m - 1)
        a, b = at(rows, i), at(rows, q)
        put!(rows, b, i)
        p == q && put!(rows, a, q)
    end
end
@noinline function permutations!(y::Ptr{Int32}, pivots::Ptr{Int32}, batches::Int, m::Int, n::Int)
    for k in 0:batches-1
        permutation_of!(nth(y, k, m), nth(pivots, k, n), m, n)
    end
end

@noinline function schur!(gees::Lapack, y::Ptr{T}, z::Ptr{T}, vectors::Bool, x::Ptr{T},
    (w, values, zw)::NTuple{3,Ptr{A}}, work::Room{A}, rwork::Ptr, batches::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        job = vectors ? 'V' : 'N'
        if !all_finite(w, n * n) || gees!(gees, job, n, w, values, zw, work, rwork) != 0
            fill_nan!(w, n * n)
            fill_nan!(zw, n * n)
        end
        give!(nth(y, i, n * n), w, n, n, n)
        vectors && give!(nth(z, i, n * n), zw, n, n, n)
    end
end

@noinline function eigh!(syevr::Lapack, v::Ptr{T}, values::Ptr{S}, x::Ptr{T}, triangle::Char,
    (w, z)::NTuple{2,Ptr{A}}, ww::Ptr{R}, support::Ptr{BlasInt},
    (work, rwork, iwork)::Tuple{Room{A},Room{R},Room{BlasInt}}, batches::Int,
    n::Int) where {T,S,A,R}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        if !all_finite(w, n * n) ||
           syevr!(syevr, triangle, n, w, ww, z, support, work, rwork, iwork) != 0
            fill_nan!(z, n * n)
            fill_nan!(ww, n)
        end
        give!(nth(v, i, n * n), z, n, n, n)
        give_vector!(nth(values, i, n), ww, n)
    end
end

# `rows` and `columns`: how many columns U and rows Vᴴ have; none for values alone.
@noinline function svd!(gesdd::Lapack, s::Ptr{S}, (u, v)::NTuple{2,Ptr{T}}, x::Ptr{T}, job::Char,
    (w, uw, vw)::NTuple{3,Ptr{A}}, sw::Ptr{R},
    (work, rwork, iwork)::Tuple{Room{A},Ptr{R},Ptr{BlasInt}},
    batches::Int, (m, n)::NTuple{2,Int}, (rows, columns)::NTuple{2,Int}) where {S,T,A,R}
    small = min(m, n)
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        if !all_finite(w, m * n) ||
           gesdd!(gesdd, job, m, n, w, sw, uw, vw, max(columns, 1), work, rwork, iwork) != 0
            fill_nan!(sw, small)
            fill_nan!(uw, m * rows)
            fill_nan!(vw, columns * n)
        end
        give_vector!(nth(s, i, small), sw, small)
        give!(nth(u, i, m * rows), uw, m, rows, m)
        give!(nth(v, i, columns * n), vw, columns, n, max(columns, 1))
    end
end

@noinline function eig!(geev::Lapack, (values, u, v)::NTuple{3,Ptr{C}}, x::Ptr{T},
    (left, right)::NTuple{2,Bool}, (w, ww, uw, vw)::NTuple{4,Ptr{A}}, work::Room{A}, rwork::Ptr,
    batches::Int, n::Int) where {C,T,A}
    job(wanted) = wanted ? 'V' : 'N'
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        to, u1, v1 = nth(values, i, n), nth(u, i, n * n), nth(v, i, n * n)
        if !all_finite(w, n * n) ||
           geev!(geev, job(left), job(right), n, w, ww, uw, vw, work, rwork) != 0
            fill_nan!(to, n)
            left && fill_nan!(u1, n * n)
            right && fill_nan!(v1, n * n)
        else
            give_values!(to, ww, rwork, n)
            left && give_vectors!(u1, uw, rwork, n)
            right && give_vectors!(v1, vw, rwork, n)
        end
    end
end
# Of a real matrix LAPACK tells the eigenvalues' real and imaginary parts apart, and of a conjugate
# pair, which come in turn, the real and the imaginary part of the first one's vector.
@inline give_values!(to::Ptr, w::Ptr{<:Complex}, parts, n) = give_vector!(to, w, n)
@inline function give_values!(to::Ptr{C}, w::Ptr{<:RealElement}, parts, n) where {C}
    for j in 0:n-1
        put!(to, C(at(parts, j), at(parts, n + j)), j)
    end
end
@inline give_vectors!(to::Ptr, v::Ptr{<:Complex}, parts, n) = give!(to, v, n, n, n)
@inline function give_vectors!(to::Ptr{C}, v::Ptr{R}, parts, n) where {C,R<:RealElement}
    for j in 0:n-1
        b = at(parts, n + j)
        first_, sign = b < 0 ? j - 1 : j, b == 0 ? zero(R) : b < 0 ? -one(R) : one(R)
        for i in 0:n-1
            im_ = b == 0 ? zero(R) : sign * at(v, (first_ + 1) * n + i)
            put!(to, C(at(v, first_ * n + i), im_), i * n + j)
        end
    end
end

@noinline function tridiagonal_solve!(gtsv::Lapack, y::Ptr{T},
    (lower, d, upper, b)::NTuple{4,Ptr{T}}, (lw, dw, uw, bw)::NTuple{4,Ptr{A}}, batches::Int,
    n::Int, columns::Int) where {T,A}
    for i in 0:batches-1
        give_vector!(lw, nth(lower, i, n) + sizeof(T), n - 1)
        give_vector!(dw, nth(d, i, n), n)
        give_vector!(uw, nth(upper, i, n), n - 1)
        take!(bw, nth(b, i, n * columns), n, columns)
        gtsv!(gtsv, n, columns, lw, dw, uw, bw) == 0 || fill_nan!(bw, n * columns)
        give!(nth(y, i, n * columns), bw, n, columns, n)
    end
end

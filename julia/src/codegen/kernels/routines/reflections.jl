# Householder reflections of batches of matrices, and what is made of them; as matrices.jl.

@noinline function qr!(geqrf::Lapack, orgqr::Lapack, (q, r)::NTuple{2,Ptr{T}}, x::Ptr{T},
    copies::NTuple{3,Ptr{A}}, work::Room{A}, batches::Int, m::Int, n::Int, k::Int) where {T,A}
    w, _, scales = copies
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        min(m, n) == 0 || geqrf!(geqrf, m, n, w, scales, work)
        orthogonal_triangular!(orgqr, nth(q, i, m * k), nth(r, i, k * n), copies, work, m, n, k)
    end
end

@noinline function pivoted_qr!(geqp3::Lapack, orgqr::Lapack, (q, r)::NTuple{2,Ptr{T}},
    p::Ptr{Int32}, x::Ptr{T}, copies::NTuple{3,Ptr{A}}, order::Ptr{BlasInt},
    (work, rwork)::Tuple{Room{A},Ptr},
    batches::Int, (m, n, k)::NTuple{3,Int}) where {T,A}
    w, _, scales = copies
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        for j in 0:n-1
            put!(order, 0, j)
        end
        min(m, n) == 0 || geqp3!(geqp3, m, n, w, order, scales, work, rwork)
        orthogonal_triangular!(orgqr, nth(q, i, m * k), nth(r, i, k * n), copies, work, m, n, k)
        for j in 0:n-1
            put!(nth(p, i, n), max(at(order, j), 1) - 1, j)
        end
    end
end

"Q and R from the reflections in `w`."
function orthogonal_triangular!(orgqr, q, r, (w, qw, scales)::NTuple{3,Ptr{A}}, work, m, n,
    k) where {A}
    small = min(m, n)
    give!((row, column) -> row <= column, r, w, k, n, m)
    for j in 0:m*k-1
        put!(qw, j < m * small ? at(w, j) : zero(A), j)
    end
    k == 0 || orgqr!(orgqr, m, k, small, qw, scales, work)
    give!(q, qw, m, k, m)
end

@noinline function reflections!(geqrf::Lapack, (y, scales)::NTuple{2,Ptr{T}}, x::Ptr{T},
    (w, sw)::NTuple{2,Ptr{A}}, work::Room{A}, batches::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        geqrf!(geqrf, m, n, w, sw, work)
        give!(nth(y, i, m * n), w, m, n, m)
        give_vector!(nth(scales, i, min(m, n)), sw, min(m, n))
    end
end

@noinline function pivoted_reflections!(geqp3::Lapack, (y, scales)::NTuple{2,Ptr{T}},
    order::Ptr{Int32}, x::Ptr{T}, first::Ptr{Int32}, (w, sw)::NTuple{2,Ptr{A}}, ow::Ptr{BlasInt},
    (work, rwork)::Tuple{Room{A},Ptr}, batches::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        give_vector!(ow, nth(first, i, n), n)
        min(m, n) == 0 || geqp3!(geqp3, m, n, w, ow, sw, work, rwork)
        give!(nth(y, i, m * n), w, m, n, m)
        give_vector!(nth(order, i, n), ow, n)
        give_vector!(nth(scales, i, min(m, n)), sw, min(m, n))
    end
end

@noinline function reflected_product!(ormqr::Lapack, y::Ptr{T}, (x, scales, c)::NTuple{3,Ptr{T}},
    (w, sw, cw)::NTuple{3,Ptr{A}}, work::Room{A}, (side, trans)::NTuple{2,Char}, batches::Int,
    (order, columns)::NTuple{2,Int}, k::Int, (m, n)::NTuple{2,Int}) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, order * columns), order, columns)
        give_vector!(sw, nth(scales, i, k), k)
        take!(cw, nth(c, i, m * n), m, n)
        k == 0 || ormqr!(ormqr, side, trans, m, n, k, w, order, sw, cw, work)
        give!(nth(y, i, m * n), cw, m, n, m)
    end
end

@noinline function tridiagonal!(sytrd::Lapack, (y, scales)::NTuple{2,Ptr{T}},
    (d, e)::NTuple{2,Ptr{S}}, x::Ptr{T}, triangle::Char, (w, sw)::NTuple{2,Ptr{A}},
    (dw, ew)::NTuple{2,Ptr{R}}, work::Room{A},
    batches::Int, n::Int) where {T,S,A,R}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        if !all_finite(w, n * n)
            fill_nan!(w, n * n)
            fill_nan!(dw, n)
            fill_nan!(ew, n - 1)
            fill_nan!(sw, n - 1)
        else
            sytrd!(sytrd, triangle, n, w, dw, ew, sw, work)
        end
        give!(nth(y, i, n * n), w, n, n, n)
        give_vector!(nth(d, i, n), dw, n)
        give_vector!(nth(e, i, n - 1), ew, n - 1)
        give_vector!(nth(scales, i, n - 1), sw, n - 1)
    end
end

@noinline function householder_product!(orgqr::Lapack, y::Ptr{T}, (x, scales)::NTuple{2,Ptr{T}},
    (w, sw)::NTuple{2,Ptr{A}}, work::Room{A}, batches::Int, m::Int, n::Int, k::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        give_vector!(sw, nth(scales, i, k), k)
        orgqr!(orgqr, m, n, k, w, sw, work)
        give!(nth(y, i, m * n), w, m, n, m)
    end
end

@noinline function hessenberg!(gehrd::Lapack, (y, scales)::NTuple{2,Ptr{T}}, x::Ptr{T},
    (w, sw)::NTuple{2,Ptr{A}}, work::Room{A}, batches::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        gehrd!(gehrd, n, w, sw, work)
        give!(nth(y, i, n * n), w, n, n, n)
        give_vector!(nth(scales, i, n - 1), sw, n - 1)
    end
end

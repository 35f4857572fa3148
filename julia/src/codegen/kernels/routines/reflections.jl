# Householder reflections of batches of matrices, and what is made of them; as matrices.jl.

@noinline function qr!(geqrf::Ptr{Cvoid}, orgqr::Ptr{Cvoid}, area::Ptr{UInt8}, q::Ptr{T}, r::Ptr{T}, x::Ptr{T}, w::Ptr{A}, qw::Ptr{A}, scales::Ptr{A}, work::Ptr{A}, lwork::Int,
                       batches::Int, m::Int, n::Int, k::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        min(m, n) == 0 || geqrf!(geqrf, area, m, n, w, scales, work, lwork)
        orthogonal_triangular!(orgqr, area, nth(q, i, m * k), nth(r, i, k * n), w, qw, scales, work, lwork, m, n, k)
    end
end

@noinline function pivoted_qr!(geqp3::Ptr{Cvoid}, orgqr::Ptr{Cvoid}, area::Ptr{UInt8}, q::Ptr{T}, r::Ptr{T}, p::Ptr{Int32}, x::Ptr{T}, w::Ptr{A}, qw::Ptr{A}, order::Ptr{BlasInt},
                               scales::Ptr{A}, work::Ptr{A}, lwork::Int, rwork::Ptr, batches::Int, m::Int, n::Int, k::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        for j in 0:n-1; put!(order, 0, j); end
        min(m, n) == 0 || geqp3!(geqp3, area, m, n, w, order, scales, work, lwork, rwork)
        orthogonal_triangular!(orgqr, area, nth(q, i, m * k), nth(r, i, k * n), w, qw, scales, work, lwork, m, n, k)
        for j in 0:n-1; put!(nth(p, i, n), max(at(order, j), 1) - 1, j); end
    end
end

"Q and R from the reflections in `w`."
function orthogonal_triangular!(orgqr, area, q, r, w, qw::Ptr{A}, scales, work, lwork, m, n, k) where {A}
    small = min(m, n)
    give!((row, column) -> row <= column, r, w, k, n, m)
    for j in 0:m*k-1
        put!(qw, j < m * small ? at(w, j) : zero(A), j)
    end
    k == 0 || orgqr!(orgqr, area, m, k, small, qw, scales, work, lwork)
    give!(q, qw, m, k, m)
end

@noinline function reflections!(geqrf::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, scales::Ptr{T}, x::Ptr{T}, w::Ptr{A}, sw::Ptr{A}, work::Ptr{A}, lwork::Int,
                                batches::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        geqrf!(geqrf, area, m, n, w, sw, work, lwork)
        give!(nth(y, i, m * n), w, m, n, m)
        give_vector!(nth(scales, i, min(m, n)), sw, min(m, n))
    end
end

@noinline function pivoted_reflections!(geqp3::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, order::Ptr{Int32}, scales::Ptr{T}, x::Ptr{T}, first::Ptr{Int32}, w::Ptr{A}, ow::Ptr{BlasInt},
                                        sw::Ptr{A}, work::Ptr{A}, lwork::Int, rwork::Ptr, batches::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        give_vector!(ow, nth(first, i, n), n)
        min(m, n) == 0 || geqp3!(geqp3, area, m, n, w, ow, sw, work, lwork, rwork)
        give!(nth(y, i, m * n), w, m, n, m)
        give_vector!(nth(order, i, n), ow, n)
        give_vector!(nth(scales, i, min(m, n)), sw, min(m, n))
    end
end

@noinline function reflected_product!(ormqr::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, x::Ptr{T}, scales::Ptr{T}, c::Ptr{T}, w::Ptr{A}, sw::Ptr{A}, cw::Ptr{A}, work::Ptr{A}, lwork::Int,
                                      side::Char, trans::Char, batches::Int, order::Int, columns::Int, k::Int, m::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, order * columns), order, columns)
        give_vector!(sw, nth(scales, i, k), k)
        take!(cw, nth(c, i, m * n), m, n)
        k == 0 || ormqr!(ormqr, area, side, trans, m, n, k, w, order, sw, cw, work, lwork)
        give!(nth(y, i, m * n), cw, m, n, m)
    end
end

@noinline function tridiagonal!(sytrd::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, d::Ptr{S}, e::Ptr{S}, scales::Ptr{T}, x::Ptr{T}, triangle::Char, w::Ptr{A}, dw::Ptr{R}, ew::Ptr{R}, sw::Ptr{A},
                                work::Ptr{A}, lwork::Int, batches::Int, n::Int) where {T,S,A,R}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        if !all_finite(w, n * n)
            fill_nan!(w, n * n); fill_nan!(dw, n); fill_nan!(ew, n - 1); fill_nan!(sw, n - 1)
        else
            sytrd!(sytrd, area, triangle, n, w, dw, ew, sw, work, lwork)
        end
        give!(nth(y, i, n * n), w, n, n, n)
        give_vector!(nth(d, i, n), dw, n)
        give_vector!(nth(e, i, n - 1), ew, n - 1)
        give_vector!(nth(scales, i, n - 1), sw, n - 1)
    end
end

@noinline function householder_product!(orgqr::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, x::Ptr{T}, scales::Ptr{T}, w::Ptr{A}, sw::Ptr{A}, work::Ptr{A}, lwork::Int,
                                        batches::Int, m::Int, n::Int, k::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, m * n), m, n)
        give_vector!(sw, nth(scales, i, k), k)
        orgqr!(orgqr, area, m, n, k, w, sw, work, lwork)
        give!(nth(y, i, m * n), w, m, n, m)
    end
end

@noinline function hessenberg!(gehrd::Ptr{Cvoid}, area::Ptr{UInt8}, y::Ptr{T}, scales::Ptr{T}, x::Ptr{T}, w::Ptr{A}, sw::Ptr{A}, work::Ptr{A}, lwork::Int, batches::Int, n::Int) where {T,A}
    for i in 0:batches-1
        take!(w, nth(x, i, n * n), n, n)
        gehrd!(gehrd, area, n, w, sw, work, lwork)
        give!(nth(y, i, n * n), w, n, n, n)
        give_vector!(nth(scales, i, n - 1), sw, n - 1)
    end
end

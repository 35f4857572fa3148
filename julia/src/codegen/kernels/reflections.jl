# Householder reflections: qr and its parts, the reductions to Hessenberg and to tridiagonal form;
# as linear_algebra.jl.

function emit_step!(::OrthogonalTriangular, s::Frame, e)
    x, (q, r) = e.inputs[1], e.outputs
    (batches, m, n), A, k, small = matrix_sizes(x), accumulator(dtype(x)), sizes(q)[end], min(sizes(x)[end-1:end]...)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    orgqr = lapack_pointer(A, :orgqr)
    lwork = k == 0 ? 1 : room_needed((area, work, _, _) -> Routines.orgqr!(orgqr, area, m, k, small, work, work, work, -1), A)[1]
    if e[:pivoting]
        geqp3 = lapack_pointer(A, :geqp3)
        lwork = max(lwork, pivoted_room(geqp3, A, m, n))
        with_fortran(s, (A, m * n), (A, m * k), (BlasInt, n), (A, small), (A, lwork), (real_dtype(A), 2n)) do area, w, qw, order, scales, work, rwork
            call!(s, Routines.pivoted_qr!, geqp3, orgqr, area, to..., from, w, qw, order, scales, work, lwork, rwork, batches, m, n, k)
        end
    else
        geqrf = lapack_pointer(A, :geqrf)
        lwork = max(lwork, reflections_room(geqrf, A, m, n))
        with_fortran(s, (A, m * n), (A, m * k), (A, small), (A, lwork)) do area, w, qw, scales, work
            call!(s, Routines.qr!, geqrf, orgqr, area, to..., from, w, qw, scales, work, lwork, batches, m, n, k)
        end
    end
end

reflections_room(f, A, m, n) =
    min(m, n) == 0 ? 1 : room_needed((area, work, _, _) -> Routines.geqrf!(f, area, m, n, work, work, work, -1), A)[1]
pivoted_room(f, A, m, n) =
    min(m, n) == 0 ? 1 : room_needed((area, work, rwork, order) -> Routines.geqp3!(f, area, m, n, work, order, work, work, -1, rwork), A)[1]

function emit_step!(::Reflections, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, m, n = matrix_sizes(x)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    f = lapack_pointer(A, :geqrf)
    lwork = reflections_room(f, A, m, n)
    with_fortran(s, (A, m * n), (A, min(m, n)), (A, lwork)) do area, w, scales, work
        call!(s, Routines.reflections!, f, area, to..., from, w, scales, work, lwork, batches, m, n)
    end
end

function emit_step!(::PivotedReflections, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, m, n = matrix_sizes(x)
    from, to = pointers(memory_of, s, e.inputs), pointers(memory!, s, e.outputs)
    f = lapack_pointer(A, :geqp3)
    lwork = pivoted_room(f, A, m, n)
    with_fortran(s, (A, m * n), (BlasInt, n), (A, min(m, n)), (A, lwork), (real_dtype(A), 2n)) do area, w, order, scales, work, rwork
        call!(s, Routines.pivoted_reflections!, f, area, to..., from..., w, order, scales, work, lwork, rwork, batches, m, n)
    end
end

function emit_step!(::ReflectedProduct, s::Frame, e)
    (a, scales, c), A = e.inputs, accumulator(dtype(e.outputs[1]))
    (batches, order, columns), (_, m, n), k = matrix_sizes(a), matrix_sizes(c), sizes(scales)[end]
    from, to = pointers(memory_of, s, e.inputs), memory!(s, e.outputs[1]).pointer
    some_empty(e) && return
    f, side, trans = lapack_pointer(A, :ormqr), e[:left] ? 'L' : 'R', !e[:transpose] ? 'N' : A <: Complex ? 'C' : 'T'
    lwork = k == 0 ? 1 : room_needed((area, work, _, _) -> Routines.ormqr!(f, area, side, trans, m, n, k, work, order, work, work, work, -1), A)[1]
    with_fortran(s, (A, order * columns), (A, k), (A, m * n), (A, lwork)) do area, w, sw, cw, work
        call!(s, Routines.reflected_product!, f, area, to, from..., w, sw, cw, work, lwork, side, trans, batches, order, columns, k, m, n)
    end
end

function emit_step!(::HouseholderProduct, s::Frame, e)
    (a, scales), v, A = e.inputs, e.outputs[1], accumulator(dtype(e.inputs[1]))
    (batches, m, n), k = matrix_sizes(a), sizes(scales)[end]
    from, to = pointers(memory_of, s, e.inputs), memory!(s, v).pointer
    some_empty(e) && return
    f = lapack_pointer(A, :orgqr)
    lwork, _, _ = room_needed((area, work, _, _) -> Routines.orgqr!(f, area, m, n, k, work, work, work, -1), A)
    with_fortran(s, (A, m * n), (A, k), (A, lwork)) do area, w, sw, work
        call!(s, Routines.householder_product!, f, area, to, from..., w, sw, work, lwork, batches, m, n, k)
    end
end

function emit_step!(::Hessenberg, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, n, _ = matrix_sizes(x)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    batches == 0 && return
    f = lapack_pointer(A, :gehrd)
    lwork, _, _ = room_needed((area, work, _, _) -> Routines.gehrd!(f, area, n, work, work, work, -1), A)
    with_fortran(s, (A, n * n), (A, n), (A, lwork)) do area, w, scales, work
        call!(s, Routines.hessenberg!, f, area, to..., from, w, scales, work, lwork, batches, n)
    end
end

function emit_step!(::TridiagonalForm, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    (batches, n, _), R = matrix_sizes(x), real_dtype(A)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    batches == 0 && return
    f, triangle = lapack_pointer(A, :sytrd), e[:lower] ? 'L' : 'U'
    lwork, _, _ = room_needed((area, work, rwork, _) -> Routines.sytrd!(f, area, triangle, n, work, rwork, rwork, work, work, -1), A)
    with_fortran(s, (A, n * n), (R, n), (R, n), (A, n), (A, lwork)) do area, w, d, off, scales, work
        call!(s, Routines.tridiagonal!, f, area, to..., from, triangle, w, d, off, scales, work, lwork, batches, n)
    end
end

# Householder reflections: qr and its parts, the reductions to Hessenberg and to tridiagonal form;
# as linear_algebra.jl.

function emit_step!(::OrthogonalTriangular, s::Frame, e)
    x, (q, r) = e.inputs[1], e.outputs
    (batches, m, n), A, k, small = (matrix_sizes(x), accumulator(dtype(x)), sizes(q)[end],
        min(sizes(x)[end-1:end]...))
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    orgqr = lapack_pointer(A, :orgqr)
    lwork = k == 0 ? 1 : product_room(orgqr, A, m, k, small)
    if e[:pivoting]
        geqp3 = lapack_pointer(A, :geqp3)
        lwork = max(lwork, pivoted_room(geqp3, A, m, n))
        with_fortran(s, (A, m * n), (A, m * k), (BlasInt, n), (A, small), (A, lwork),
            (real_dtype(A), 2n)) do area, w, qw, order, scales, work, rwork
            call!(s, Routines.pivoted_qr!, lapack(geqp3, area), lapack(orgqr, area),
                tuple_of(to[1:2]...), to[3], from, tuple_of(w, qw, scales), order,
                tuple_of(room(work, lwork), rwork), batches, (m, n, k))
        end
    else
        geqrf = lapack_pointer(A, :geqrf)
        lwork = max(lwork, reflections_room(geqrf, A, m, n))
        with_fortran(s, (A, m * n), (A, m * k), (A, small), (A, lwork)) do area, w, qw, scales, work
            call!(s, Routines.qr!, lapack(geqrf, area), lapack(orgqr, area), tuple_of(to...), from,
                tuple_of(w, qw, scales), room(work, lwork), batches, m, n, k)
        end
    end
end

function reflections_room(f, A, m, n)
    min(m, n) == 0 && return 1
    room_needed(
        (lapack, work, _, _) ->
            Routines.geqrf!(lapack, m, n, work.pointer, work.pointer, work), f, A)[1]
end
function pivoted_room(f, A, m, n)
    min(m, n) == 0 && return 1
    lwork, _, _ = room_needed(f, A) do lapack, work, rwork, order
        Routines.geqp3!(lapack, m, n, work.pointer, order.pointer, work.pointer, work,
            rwork.pointer)
    end
    lwork
end
function product_room(f, A, m, n, k)
    room_needed(
        (lapack, work, _, _) ->
            Routines.orgqr!(lapack, m, n, k, work.pointer, work.pointer, work), f, A)[1]
end

function emit_step!(::Reflections, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, m, n = matrix_sizes(x)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    f = lapack_pointer(A, :geqrf)
    lwork = reflections_room(f, A, m, n)
    with_fortran(s, (A, m * n), (A, min(m, n)), (A, lwork)) do area, w, scales, work
        call!(s, Routines.reflections!, lapack(f, area), tuple_of(to...), from, tuple_of(w, scales),
            room(work, lwork), batches, m, n)
    end
end

function emit_step!(::PivotedReflections, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, m, n = matrix_sizes(x)
    from, to = pointers(memory_of, s, e.inputs), pointers(memory!, s, e.outputs)
    f = lapack_pointer(A, :geqp3)
    lwork = pivoted_room(f, A, m, n)
    with_fortran(s, (A, m * n), (BlasInt, n), (A, min(m, n)), (A, lwork),
        (real_dtype(A), 2n)) do area, w, order, scales, work, rwork
        call!(s, Routines.pivoted_reflections!, lapack(f, area), tuple_of(to[1], to[3]), to[2],
            from..., tuple_of(w, scales), order, tuple_of(room(work, lwork), rwork), batches, m, n)
    end
end

function emit_step!(::ReflectedProduct, s::Frame, e)
    (a, scales, c), A = e.inputs, accumulator(dtype(e.outputs[1]))
    (batches, order, columns), (_, m, n), k = matrix_sizes(a), matrix_sizes(c), sizes(scales)[end]
    from, to = pointers(memory_of, s, e.inputs), memory!(s, e.outputs[1]).pointer
    some_empty(e) && return
    f, side, trans = lapack_pointer(A, :ormqr),
    e[:left] ? 'L' : 'R',
    !e[:transpose] ? 'N' :
    A <: Complex ? 'C' : 'T'
    lwork =
        k == 0 ? 1 : first(room_needed(f, A) do lapack, work, _, _
            a = work.pointer
            Routines.ormqr!(lapack, side, trans, m, n, k, a, order, a, a, work)
        end)
    with_fortran(s, (A, order * columns), (A, k), (A, m * n), (A, lwork)) do area, w, sw, cw, work
        call!(s, Routines.reflected_product!, lapack(f, area), to, tuple_of(from...),
            tuple_of(w, sw, cw), room(work, lwork), (side, trans), batches, (order, columns),
            k, (m, n))
    end
end

function emit_step!(::HouseholderProduct, s::Frame, e)
    (a, scales), v, A = e.inputs, e.outputs[1], accumulator(dtype(e.inputs[1]))
    (batches, m, n), k = matrix_sizes(a), sizes(scales)[end]
    from, to = pointers(memory_of, s, e.inputs), memory!(s, v).pointer
    some_empty(e) && return
    f = lapack_pointer(A, :orgqr)
    lwork = product_room(f, A, m, n, k)
    with_fortran(s, (A, m * n), (A, k), (A, lwork)) do area, w, sw, work
        call!(s, Routines.householder_product!, lapack(f, area), to, tuple_of(from...),
            tuple_of(w, sw), room(work, lwork), batches, m, n, k)
    end
end

function emit_step!(::Hessenberg, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, n, _ = matrix_sizes(x)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    batches == 0 && return
    f = lapack_pointer(A, :gehrd)
    lwork, _, _ =
        room_needed(
            (lapack, work, _, _) ->
                Routines.gehrd!(lapack, n, work.pointer, work.pointer, work), f, A)
    with_fortran(s, (A, n * n), (A, n), (A, lwork)) do area, w, scales, work
        call!(s, Routines.hessenberg!, lapack(f, area), tuple_of(to...), from, tuple_of(w, scales),
            room(work, lwork), batches, n)
    end
end

function emit_step!(::TridiagonalForm, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    (batches, n, _), R = matrix_sizes(x), real_dtype(A)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    batches == 0 && return
    f, triangle = lapack_pointer(A, :sytrd), e[:lower] ? 'L' : 'U'
    lwork, _, _ = room_needed(f, A) do lapack, work, rwork, _
        a, r = work.pointer, rwork.pointer
        Routines.sytrd!(lapack, triangle, n, a, r, r, a, work)
    end
    with_fortran(s, (A, n * n), (R, n), (R, n), (A, n), (A, lwork)) do area, w, d, off, scales, work
        call!(s, Routines.tridiagonal!, lapack(f, area), tuple_of(to[1], to[4]),
            tuple_of(to[2], to[3]), from, triangle, tuple_of(w, scales), tuple_of(d, off),
            room(work, lwork), batches, n)
    end
end

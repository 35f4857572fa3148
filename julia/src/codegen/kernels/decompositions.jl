# LU, eigenvalues of any matrix, tridiagonal systems and solvers of the user's; as
# linear_algebra.jl.

function emit_step!(::LU, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    batches, m, n = matrix_sizes(x)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    dtype(x) <: Routines.RealElement && max(m, n) <= FEW_UNKNOWNS &&
        return call!(s, Routines.eliminate!, to..., from, batches, m, n)
    with_fortran(s, (A, m * n), (BlasInt, min(m, n))) do area, w, exchanges
        call!(s, Routines.lu!, lapack(lapack_pointer(A, :getrf), area), to..., from, w, exchanges,
            batches, m, n)
    end
end

function emit_step!(::PivotsToPermutation, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    from, to = memory_of(s, x).pointer, memory!(s, v).pointer
    call!(s, Routines.permutations!, to, from, prod(sizes(x)[1:end-1]), sizes(v)[end],
        sizes(x)[end])
end

function emit_step!(::Eig, s::Frame, e)
    x, A, left, right = e.inputs[1], accumulator(dtype(e.inputs[1])), e[:left], e[:right]
    (batches, n, _), R = matrix_sizes(x), real_dtype(A)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    f = lapack_pointer(A, :geev)
    jobs = map(wanted -> wanted ? 'V' : 'N', (left, right))
    lwork, _, _ = room_needed(f, A) do lapack, work, rwork, _
        a = work.pointer
        Routines.geev!(lapack, jobs..., n, a, a, a, a, work, rwork.pointer)
    end
    u, v = left ? to[2] : to[1], right ? to[end] : to[1]
    with_fortran(s, (A, n * n), (A, n), (A, left ? n * n : 0), (A, right ? n * n : 0), (A, lwork),
        (R, 2n)) do area, w, ww, uw, vw, work, rwork
        call!(s, Routines.eig!, lapack(f, area), tuple_of(to[1], u, v), from, (left, right),
            tuple_of(w, ww, uw, vw), room(work, lwork), rwork, batches, n)
    end
end

function emit_step!(::Schur, s::Frame, e)
    x, A, vectors = e.inputs[1], accumulator(dtype(e.inputs[1])), e[:vectors]
    (batches, n, _), R = matrix_sizes(x), real_dtype(A)
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    f = lapack_pointer(A, :gees)
    lwork, _, _ = room_needed(f, A) do lapack, work, rwork, _
        a = work.pointer
        Routines.gees!(lapack, vectors ? 'V' : 'N', n, a, a, a, work, rwork.pointer)
    end
    with_fortran(s, (A, n * n), (A, n), (A, n * n), (A, lwork),
        (R, 2n)) do area, w, values, z, work, rwork
        call!(s, Routines.schur!, lapack(f, area), to[1], to[end], vectors, from,
            tuple_of(w, values, z), room(work, lwork), rwork, batches, n)
    end
end

function emit_step!(::TridiagonalSolve, s::Frame, e)
    v = e.outputs[1]
    (batches, n, columns), A = matrix_sizes(v), accumulator(dtype(v))
    from, to = pointers(memory_of, s, e.inputs), memory!(s, v).pointer
    some_empty(e) && return
    with_fortran(s, (A, n), (A, n), (A, n), (A, n * columns)) do area, copies...
        call!(s, Routines.tridiagonal_solve!, lapack(lapack_pointer(A, :gtsv), area), to,
            tuple_of(from...), tuple_of(copies...), batches, n, columns)
    end
end

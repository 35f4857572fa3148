# Linear algebra by LAPACK, whose own work space is asked for while code is written.

const LAPACK_PREFIX = Dict{DataType,String}(Float32 => "s", Float64 => "d", ComplexF32 => "c",
    ComplexF64 => "z")
# What complex matrices call otherwise.
const UNITARY = Dict(:orgqr => :ungqr, :ormqr => :unmqr, :syevr => :heevr, :sytrd => :hetrd)
lapack_pointer(::Type{T}, routine) where {T} =
    blas_pointer(Symbol(LAPACK_PREFIX[T], T <: Complex ? get(UNITARY, routine, routine) : routine))

"Pointers to elements in the workspace, so many of each type, while `f` writes code."
function with_arrays(f, s::Frame, wanted::Tuple...)
    isempty(wanted) && return f()
    with_elements(s, wanted[1]...) do p
        with_arrays((rest...) -> f(p, rest...), s, wanted[2:end]...)
    end
end
"The same, with the area for arguments first."
with_fortran(f, s::Frame, wanted::Tuple...) =
    with_arrays(f, s, (UInt8, Routines.FORTRAN_ARGUMENTS), wanted...)

# In code: a routine by its address and the area, and memory to work in.
lapack(routine::Ptr{Cvoid}, area) = :($(Routines.Lapack)($routine, $area))
room(pointer, length::Int) = :($(Routines.Room)($pointer, $length))

"""
What a routine of LAPACK answers when asked how much room it needs: `ask(lapack, work, rwork,
iwork)` calls it with room of length -1, whose pointers also stand for its arrays. Gives the three
lengths."""
function room_needed(ask, routine::Ptr{Cvoid}, ::Type{T}) where {T}
    area, work, rwork, iwork = (zeros(UInt8, Routines.FORTRAN_ARGUMENTS), zeros(T, 1),
        zeros(real(T), 1), zeros(BlasInt, 1))
    GC.@preserve area work rwork iwork begin
        ask(Routines.Lapack(routine, pointer(area)),
            (Routines.Room(pointer(x), -1) for x in (work, rwork, iwork))...)
    end
    # A length told as a Float32 may have been rounded down.
    up(x) = max(1, ceil(Int, nextfloat(real(x))))
    up(work[1]), up(rwork[1]), max(1, Int(iwork[1]))
end

matrix_sizes(v) = (prod(sizes(v)[1:end-2]), sizes(v)[end-1], sizes(v)[end])
pointers(f, s::Frame, vars) = [f(s, v).pointer for v in vars]
some_empty(e) = all(v -> any(==(0), sizes(v)), e.outputs)

function emit_step!(::TriangularSolve, s::Frame, e)
    a, v = e.inputs[1], e.outputs[1]
    some_empty(e) && return memory!(s, v)
    k, columns = sizes(a)[end], sizes(v)[end-(e[:left_side] ? 0 : 1)]
    dtype(v) <: Routines.RealElement &&
    (k <= FEW_UNKNOWNS || columns >= LEAST_SIDES && k <= MOST_SOLVED_BY_TILES) ?
    solve_by_tiles!(s, e, columns) : solve_by_blas!(s, e)
end

function solve_by_tiles!(s::Frame, e, columns)
    a, b, v = e.inputs..., e.outputs[1]
    T, k, batches = dtype(v), sizes(a)[end], matrix_sizes(v)[1]
    pa, pb, to = pointers(memory_of, s, e.inputs)..., memory!(s, v).pointer
    # X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ. Rows a power of two apart would share lines of the cache.
    apart = e[:left_side] ? columns : columns + 64 ÷ sizeof(T)
    W = Routines.lane_count(T, columns, register_bytes(s.generator.target))
    system = Routines.TriangularRows{W}(k, columns, apart, e[:lower],
        e[:transpose_a] == e[:left_side], e[:unit_diagonal])
    with_arrays(s, (T, k * k)) do w
        e[:left_side] ? call!(s, Routines.solve_left!, to, pa, pb, w, system, batches) :
        with_arrays(s, (T, k * apart)) do x
            call!(s, Routines.solve_right!, to, pa, pb, w, x, system, batches)
        end
    end
end

function solve_by_blas!(s::Frame, e)
    a, b, v = e.inputs..., e.outputs[1]
    (batches, m, n), k, A = matrix_sizes(v), sizes(a)[end], accumulator(dtype(v))
    pa, pb, to = pointers(memory_of, s, e.inputs)..., memory!(s, v).pointer
    # rows are LAPACK's columns: the triangle is on the other side, and in the other half
    triangle = Routines.Triangle(e[:left_side] ? 'R' : 'L', e[:lower] ? 'U' : 'L',
        e[:transpose_a] ? 'T' : 'N', e[:unit_diagonal] ? 'U' : 'N', e[:conjugate_a])
    converts = A !== dtype(v)
    with_fortran(s, (A, converts || e[:conjugate_a] ? k * k : 0),
        (A, converts ? m * n : 0)) do area, wa, wx
        call!(s, Routines.triangular_solve!, lapack(lapack_pointer(A, :trsm), area), to, pa, pb,
            tuple_of(wa, wx), triangle, batches, k, m, n)
    end
end

function emit_step!(::Cholesky, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    (batches, n, _), A = matrix_sizes(v), accumulator(dtype(v))
    from, to = memory_of(s, x).pointer, memory!(s, v).pointer
    some_empty(e) && return
    with_fortran(s, (A, n * n)) do area, w
        call!(s, Routines.cholesky!, lapack(lapack_pointer(A, :potrf), area), to, from, w,
            batches, n)
    end
end

function emit_step!(::HermitianEigen, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    (batches, n, _), R = matrix_sizes(x), real_dtype(A)
    from, (vectors, values) = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    some_empty(e) && return
    f, triangle = lapack_pointer(A, :syevr), e[:lower] ? 'L' : 'U'
    lwork, lrwork, liwork = room_needed(f, A) do lapack, work, rwork, iwork
        a = work.pointer
        Routines.syevr!(lapack, triangle, n, a, rwork.pointer, a, iwork.pointer, work, rwork, iwork)
    end
    with_fortran(s, (A, n * n), (A, n * n), (R, n), (BlasInt, 2n), (A, lwork), (R, lrwork),
        (BlasInt, liwork)) do area, w, z, ww, support, work, rwork, iwork
        rooms = tuple_of(room(work, lwork), room(rwork, lrwork), room(iwork, liwork))
        call!(s, Routines.eigh!, lapack(f, area), vectors, values, from, triangle, tuple_of(w, z),
            ww, support, rooms, batches, n)
    end
end

function emit_step!(::SingularValues, s::Frame, e)
    x, A = e.inputs[1], accumulator(dtype(e.inputs[1]))
    (batches, m, n), R = matrix_sizes(x), real_dtype(A)
    small, full, vectors = min(m, n), e[:full_matrices], e[:compute_uv]
    from, to = memory_of(s, x).pointer, pointers(memory!, s, e.outputs)
    small == 0 && return foreach(v -> fill_identities!(s, v), e.outputs)
    rows, columns = !vectors ? (0, 0) : full ? (m, n) : (small, small)
    f, job = lapack_pointer(A, :gesdd), vectors ? (full ? 'A' : 'S') : 'N'
    lwork, _, _ = room_needed(f, A) do lapack, work, rwork, iwork
        a, r = work.pointer, rwork.pointer
        Routines.gesdd!(lapack, job, m, n, a, r, a, a, max(columns, 1), work, r, iwork.pointer)
    end
    lrwork = vectors ? small * max(5small + 7, 2max(m, n) + 2small + 1) : 7small
    u, v = vectors ? to[2:3] : (from, from)
    with_fortran(s, (A, m * n), (R, small), (A, m * rows), (A, columns * n), (A, lwork),
        (R, lrwork), (BlasInt, 8small)) do area, w, sw, uw, vw, work, rwork, iwork
        call!(s, Routines.svd!, lapack(f, area), to[1], tuple_of(u, v), from, job,
            tuple_of(w, uw, vw), sw, tuple_of(room(work, lwork), rwork, iwork), batches, (m, n),
            (rows, columns))
    end
end

"The orthonormal factors of matrices without elements are identities."
function fill_identities!(s::Frame, v::Var)
    any(==(0), sizes(v)) && return memory!(s, v)
    fill_memory!(s, memory!(s, v), zero(dtype(v)))
    batches, m, n = matrix_sizes(v)
    diagonal = Store(Literal(one(dtype(v))), memory!(s, v).pointer, dtype(v),
        Affine([m * n, n + 1], 0, []))
    emit_nest!(s, [batches, min(m, n)], [diagonal], Reduce[])
end

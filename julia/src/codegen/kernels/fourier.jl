# fft.

# What transforms look up, for as long as any kernel lives: e^(± 2πi j / n), Bluestein's chirps and
# their transforms.
const FOURIER_TABLES = Dict{Any,Vector}()
fourier_table(make, kind, C, n, sign) =
    pointer(get!(() -> make()::Vector{C}, FOURIER_TABLES, (kind, C, n, sign)))

roots_table(C, n, sign) =
    fourier_table(() -> C[root_of_unity(C, j, n, sign) for j in 0:n-1], :roots, C, n, sign)
chirp_table(C, n, sign) = fourier_table(() -> chirp(C, n, sign), :chirp, C, n, sign)
filter_table(C, n, m, sign) =
    fourier_table(:filter, C, n, sign) do
        c = conj(chirp(ComplexF64, n, sign))
        c = vcat(c, zeros(ComplexF64, m - 2n + 1), reverse(c[2:end]))
        C.(dft(c, -1) ./ m)
    end

"The radices of the passes for length n, or nothing where a prime factor is too large for them."
function radices(n)
    found = Int[]
    for r in Routines.RADICES
        while n % r == 0
            push!(found, r)
            n ÷= r
        end
    end
    n == 1 ? Tuple(found) : nothing
end

function emit_step!(::FourierTransform, s::Frame, e)
    x, v, n = e.inputs[1], e.outputs[1], e[:fft_lengths]
    any(==(0), vcat(sizes(x), sizes(v))) && return fill_memory!(s, memory!(s, v), zero(dtype(v)))
    axes = collect(ndims(aval(v))-length(n):ndims(aval(v))-1)
    emit_transform!(Val(e[:fft_type]), s, e, axes)
    e[:fft_type] in (:ifft, :irfft) || return
    R, m = real_dtype(dtype(v)), memory!(s, v)
    reals = cast_pointer!(s, m, R)
    call!(s, Routines.scale!, reals, R(1 / prod(n)), bytes(aval(v)) ÷ sizeof(R))
end

emit_transform!(::Val{:fft}, s, e, axes) =
    transform_axes!(s, memory!(s, e.outputs[1]), memory_of(s, e.inputs[1]), reverse(axes), -1)
emit_transform!(::Val{:ifft}, s, e, axes) =
    transform_axes!(s, memory!(s, e.outputs[1]), memory_of(s, e.inputs[1]), reverse(axes), 1)

# The last axis first: the others are then half as long together.
function emit_transform!(::Val{:rfft}, s, e, axes)
    x, v = e.inputs[1], e.outputs[1]
    to, n = memory!(s, v), sizes(x)[end]
    if is_by_halves(n)
        halves = cast_pointer!(s, memory_of(s, x), dtype(v))
        transform_lines!(s, to.pointer, halves, dtype(v), -1,
            (Routines.Whole() => last_axis(n ÷ 2), Routines.Half() => last_axis(n ÷ 2 + 1)),
            n ÷ 2, prod(sizes(x)[1:end-1]))
    else
        full = TensorType(dtype(v), shape(x))
        with_memory(s, full) do a
            copy_elements!(s, a,
                virtual!(s, :convert_element_type, x; dtype = dtype_name(dtype(v))))
            transform_axis!(s, a, a, axes[end], -1)
            copy_elements!(s, to, window(s, variable_at!(s, a), zeros(Int, ndims(full)), sizes(v)))
        end
    end
    transform_axes!(s, to, to, reverse(axes[1:end-1]), -1)
end

function emit_transform!(::Val{:irfft}, s, e, axes)
    x, v = e.inputs[1], e.outputs[1]
    length(axes) == 1 && return transform_to_real!(s, v, memory_of(s, x), axes[end])
    with_memory(s, aval(x)) do a
        transform_axes!(s, a, memory_of(s, x), axes[1:end-1], 1)
        transform_to_real!(s, v, a, axes[end])
    end
end
function transform_to_real!(s::Frame, v, from::Memory, axis)
    C, n, to = from.type.dtype, sizes(v)[end], memory!(s, v)
    if is_by_halves(n)
        return transform_lines!(s, cast_pointer!(s, to, C), from.pointer, C, 1,
            (Routines.Half() => last_axis(n ÷ 2 + 1), Routines.Whole() => last_axis(n ÷ 2)),
            n ÷ 2, prod(sizes(v)[1:end-1]))
    end
    with_memory(s, TensorType(C, shape(v))) do a
        call!(s, Routines.complete_lines!, a.pointer, from.pointer, prod(sizes(v)[1:end-1]), n)
        transform_axis!(s, a, a, axis, 1)
        copy_elements!(s, to, virtual!(s, :real, variable_at!(s, a)))
    end
end
"Whether real lines are transformed as complex ones of half the length."
is_by_halves(n) = iseven(n) && radices(n ÷ 2) !== nothing

"An array in memory as a variable."
variable_at!(s::Frame, m::Memory) = (v = Var(m.type); s.storages[v] = m; v)

"Transforms along these axes, from one array to another or in place."
function transform_axes!(s::Frame, to::Memory, from::Memory, axes, sign)
    for axis in axes
        transform_axis!(s, to, from, axis, sign)
        from = to
    end
end

function transform_axis!(s::Frame, to::Memory, from::Memory, axis, sign)
    C = from.type.dtype
    before, n, after = around_axis(from.type, axis)
    radices(n) === nothing && return chirp_transform!(s, to, from, before, n, after, sign)
    # vectors lie across lines that lie side by side, if there are enough of them
    side_by_side = after >= min(before, 8)
    lines = side_by_side ? Routines.Lines(after, 1, n * after) : Routines.Lines(after, n * after, 1)
    transform_lines!(s, to.pointer, from.pointer, C, sign,
        (Routines.Whole() => lines, Routines.Whole() => lines), n,
        (side_by_side ? (after, before) : (before, after))...)
end

"Lines of n numbers along the last axis."
last_axis(n) = Routines.Lines(1, n, 0)

"""
Transforms of length n of `groups` of `lines`. `ends`: how these are read and where they lie, and
how they are written."""
function transform_lines!(s::Frame, to, from, C, sign, ends, n, lines, groups = 1)
    at_once = min(lines, lines_at_once(C, n))
    twice = any(((kind, _),) -> kind isa Routines.Half, ends) ? 2n : n
    tables = tuple_of(roots_table(C, n, sign), roots_table(C, twice, sign))
    with_elements(s, real(C), 4n * at_once) do work
        call!(s, Routines.transform!, to, from, work, tables, radices(n), map(first, ends),
            map(last, ends), Routines.Transform(n, lines, groups, at_once))
    end
end
"So many lines that they stay in a cache, in whole vectors; of long lines fewer than a vector."
function lines_at_once(C, n)
    line = 2n * sizeof(C)
    vectors = FOURIER_BYTES ÷ 16line
    vectors > 0 ? 16vectors : clamp(LARGEST_FOURIER_BYTES ÷ line, 1, 16)
end

function chirp_transform!(s::Frame, to::Memory, from::Memory, before, n, after, sign)
    C, m = from.type.dtype, nextpow(2, 2n - 1)
    with_elements(s, real(C), 4m) do work
        tables = tuple_of(chirp_table(C, n, sign), filter_table(C, n, m, sign),
            roots_table(C, m, -1))
        call!(s, Routines.chirp_transform!, to.pointer, from.pointer, work, tables, radices(m), m,
            before, n, after)
    end
end

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
    x, v, kind, n = e.inputs[1], e.outputs[1], e[:fft_type], e[:fft_lengths]
    any(==(0), vcat(sizes(x), sizes(v))) && return fill_memory!(s, memory!(s, v), zero(dtype(v)))
    sign, first_ = kind in (:fft, :rfft) ? -1 : 1, ndims(aval(v)) - length(n)
    longer = kind === :rfft ? x : v
    full = TensorType(complex_dtype(dtype(v)), shape(longer))
    axes = collect(first_:ndims(aval(v))-1)
    with_memory(s, full) do a
        with_memory(s, full) do b
            emit_transform!(Val(kind), s, e, axes, sign, full, a, b)
        end
    end
    sign == 1 || return
    R, m = real_dtype(dtype(v)), memory!(s, v)
    reals = cast_pointer!(s, m, R)
    call!(s, Routines.scale!, reals, R(1 / prod(n)), bytes(aval(v)) ÷ sizeof(R))
end

retyped(m::Memory, type) = Memory(m.pointer, type, m.owned)
"An array in memory as a variable."
variable_at!(s::Frame, m::Memory) = (v = Var(m.type); s.storages[v] = m; v)

function emit_transform!(::Union{Val{:fft},Val{:ifft}}, s, e, axes, sign, full, a, b)
    transform_axes!(s, memory_of(s, e.inputs[1]), reverse(axes), sign, a, b,
        memory!(s, e.outputs[1]))
end

# The last axis first: the others are then half as long together.
function emit_transform!(::Val{:rfft}, s, e, axes, sign, full, a, b)
    x, v = e.inputs[1], e.outputs[1]
    copy_elements!(s, a, virtual!(s, :convert_element_type, x; dtype = dtype_name(full.dtype)))
    transform_axis!(s, b, a, axes[end], sign)
    half = window(s, variable_at!(s, b), zeros(Int, ndims(full)), sizes(v))
    length(axes) == 1 && return copy_elements!(s, memory!(s, v), half)
    kept = retyped(a, aval(v))
    copy_elements!(s, kept, half)
    transform_axes!(s, kept, reverse(axes[1:end-1]), sign, a, b, memory!(s, v))
end

function emit_transform!(::Val{:irfft}, s, e, axes, sign, full, a, b)
    x, v = e.inputs[1], e.outputs[1]
    from = memory_of(s, x)
    length(axes) == 1 || (from = transform_axes!(s, from, axes[1:end-1], sign, a, b, a))
    whole, result = from.pointer === b.pointer ? (a, b) : (b, a)
    call!(s, Routines.complete_lines!, whole.pointer, from.pointer, prod(sizes(v)[1:end-1]),
        sizes(v)[end])
    transform_axis!(s, result, whole, axes[end], sign)
    copy_elements!(s, memory!(s, v), virtual!(s, :real, variable_at!(s, result)))
end

"Transforms along these axes, the last transform's result in `last_`."
function transform_axes!(s::Frame, from::Memory, axes, sign, a, b, last_)
    for (k, axis) in enumerate(axes)
        spare = from.pointer === a.pointer ? b : a
        to = k == length(axes) && last_.pointer !== from.pointer ? last_ : spare
        transform_axis!(s, retyped(to, from.type), from, axis, sign)
        from = retyped(to, from.type)
    end
    from
end

function transform_axis!(s::Frame, to::Memory, from::Memory, axis, sign)
    C = from.type.dtype
    before, n, after = around_axis(from.type, axis)
    passes = radices(n)
    passes === nothing && return chirp_transform!(s, to, from, before, n, after, sign)
    with_elements(s, C, n * after) do spare
        call!(s, Routines.transform!, to.pointer, from.pointer, spare, roots_table(C, n, sign),
            passes, before, n, after)
    end
end

function chirp_transform!(s::Frame, to::Memory, from::Memory, before, n, after, sign)
    C, m = from.type.dtype, nextpow(2, 2n - 1)
    with_elements(s, C, 3m) do work
        lines = tuple_of(work, :($work + $(m * sizeof(C))), :($work + $(2m * sizeof(C))))
        tables = tuple_of(chirp_table(C, n, sign), filter_table(C, n, m, sign),
            roots_table(C, m, -1))
        call!(s, Routines.chirp_transform!, to.pointer, from.pointer, lines, tables, radices(m), m,
            before, n, after)
    end
end

# Slices at places known from the attributes (slice) or at run time (dynamic_…). All are linear.

@primitive Slice slice(start, limit, strides)
linear_operands(::Slice, eqn) = (1,)

function infer(op::Slice, types, attrs)
    x, start, limit, strides = types[1], attrs[:start], attrs[:limit], attrs[:strides]
    length(start) == length(limit) == length(strides) == ndims(x) &&
        all(s -> s isa Int && s > 0, strides) &&
        !any(below(s, 0) || below(l, s) || below(n, l)
             for (s, l, n) in zip(start, limit, x.shape)) ||
        infer_error(op, "$start:$limit by $strides does not fit $(type_text(x))")
    [TensorType(x.dtype, Dim[fld(l - s + (k - 1), k) for (s, l, k) in zip(start, limit, strides)])]
end

evaluate(::Slice, x, attrs, types) =
    [
        section(x[1],
            reverse([s+1:k:l for (s, k, l) in zip(attrs[:start], attrs[:strides], attrs[:limit])]))
    ]

function transpose(::Slice, b, eqn, ȳ, x)
    type, start, strides = aval(x[1]), eqn[:start], eqn[:strides]
    used = Dim[s + dilated(n, k - 1) for (s, n, k) in zip(start, shape(ȳ[1]), strides)]
    [
        emit(b, :pad, ȳ[1], zeros_of(b, TensorType(type.dtype)); low = start,
            high = type.shape .- used, interior = strides .- 1)
    ]
end

@primitive DynamicSlice dynamic_slice(sizes)
linear_operands(::DynamicSlice, eqn) = (1,)

function infer(op::DynamicSlice, types, attrs)
    x, sizes = types[1], attrs[:sizes]
    check_starts(op, x, types[2:end])
    check_window(op, x, sizes)
    [TensorType(x.dtype, Shape(sizes))]
end

check_starts(op, x, starts) =
    length(starts) == ndims(x) &&
    all(t -> isempty(t.shape) && t.dtype <: Integer && t.dtype !== Bool, starts) ||
    infer_error(op, "the starts ($(join(map(type_text, starts), ", "))) do not fit $(type_text(x))")
check_window(op, x, sizes) =
    length(sizes) == ndims(x) &&
    !any(below(s, 0) || below(n, s) for (s, n) in zip(sizes, x.shape)) ||
    infer_error(op, "a window of shape $sizes does not fit into $(type_text(x))")

"The position of a window of `sizes` in `x`, moved as far as needed to lie inside."
clamped_window(x, starts, sizes) =
    map(size(x), Tuple(reverse(starts)), Tuple(reverse(sizes))) do n, start, size
        at = Int(clamp(start[], 0, n - size))
        at+1:at+size
    end

evaluate(::DynamicSlice, x, attrs, types) =
    [section(x[1], clamped_window(x[1], x[2:end], Int.(attrs[:sizes])))]

transpose(::DynamicSlice, b, eqn, ȳ, x) =
    vcat(emits(b, :dynamic_update_slice, Atom[zeros_of(b, aval(x[1])), ȳ[1], x[2:end]...]),
        nothings(length(x) - 1))
nothings(n) = MaybeAtom[nothing for _ in 1:n]

function static_windows(::DynamicSlice, b, eqn, known)
    x, sizes, starts = eqn.inputs[1], eqn[:sizes], map(known, eqn.inputs[2:end])
    isempty(starts) || any(isnothing, starts) || !all(n -> n isa Int, vcat(shape(x), sizes)) ?
    nothing :
    slice_at(b, x, clamp.(Int.(only.(starts)), 0, shape(x) .- sizes), sizes)
end
slice_at(b, x, start, sizes) =
    emit(b, :slice, x; start = start, limit = start .+ sizes, strides = ones(Int, length(start)))

@primitive DynamicUpdateSlice dynamic_update_slice()
linear_operands(::DynamicUpdateSlice, eqn) = (1, 2)

function infer(op::DynamicUpdateSlice, types, attrs)
    x, update = types[1], types[2]
    same_dtypes(op, types[1:2])
    check_starts(op, x, types[3:end])
    check_window(op, x, update.shape)
    [x]
end

function evaluate(::DynamicUpdateSlice, x, attrs, types)
    ndims(x[1]) == 0 && return [copy(x[2])]
    y = copy(x[1])
    y[clamped_window(y, x[3:end], collect(reverse(size(x[2]))))...] = x[2]
    [y]
end

function transpose(::DynamicUpdateSlice, b, eqn, ȳ, x)
    starts, update = Atom[x[3:end]...], aval(x[2])
    x̄ =
        islinear(x[1]) ?
        emits(b, :dynamic_update_slice, Atom[ȳ[1], zeros_of(b, update), starts...])[1] : nothing
    ū =
        islinear(x[2]) ?
        emits(b, :dynamic_slice, Atom[ȳ[1], starts...]; sizes = update.shape)[1] : nothing
    vcat(MaybeAtom[x̄, ū], nothings(length(starts)))
end

overwritten(::DynamicUpdateSlice, b, eqn) = only_one(
    emits(b, :dynamic_slice, Atom[eqn.inputs[1], eqn.inputs[3:end]...];
        sizes = shape(eqn.inputs[2]))
)
write_back(op::DynamicUpdateSlice, b, eqn, result, part, starts) =
    only_one(emit!(b, op, Atom[result, part, starts...]))

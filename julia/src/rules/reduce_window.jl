# Reductions of each window that slides over an array; the padding is the neutral element. Windows
# as in windows.jl.

for (type, title, f, combining, neutral) in [
    (:ReduceWindowSum, :reduce_window_sum, +, :add, zero),
    (:ReduceWindowMax, :reduce_window_max, larger, :max, least),
    (:ReduceWindowMin, :reduce_window_min, smaller, :min, greatest)]
    @eval begin
        @primitive $type $title(window, strides, low, high, base_dilation, window_dilation)
        combiner(::$type) = $f
        combining(::$type) = $(QuoteNode(combining))
        neutral(::$type, T) = $neutral(T)
    end
end
const ReduceWindow = Union{ReduceWindowSum,ReduceWindowMax,ReduceWindowMin}

sliding(attrs) =
    Slide(attrs[:window], attrs[:strides], attrs[:low], attrs[:high], attrs[:base_dilation],
        attrs[:window_dilation])

function infer(op::ReduceWindow, types, attrs)
    x = types[1]
    op isa ReduceWindowSum && x.dtype === Bool && infer_error(op, "does not take $(type_text(x))")
    [TensorType(x.dtype, places(op, sliding(attrs), x.shape))]
end

function evaluate(op::ReduceWindow, x, attrs, types)
    T, s, out = types[1].dtype, sliding(attrs), Int.(types[1].shape)
    A = accumulator(T)
    y = fill(neutral(op, A), reverse(out)...)
    isempty(y) && return [rounded(T, y)]
    source = padded(convert(Array{A}, x[1]), neutral(op, A), s)
    for position in positions(s)
        y .= combiner(op).(y, view(source, reached(s, position, out)...))
    end
    [rounded(T, y)]
end

linear_operands(::ReduceWindowSum, eqn) = (1,)

# A convolution with ones in every window: its transpose slides the same window over ȳ
# dilated by the strides.
function transpose(::ReduceWindowSum, b, eqn, ȳ, x)
    s, type = sliding(eqn.attrs), aval(x[1])
    low, high = padding_back(s, type.shape, shape(ȳ[1]))
    spread = emit(b, :pad, ȳ[1], zeros_of(b, TensorType(type.dtype)); low = low, high = high,
        interior = s.strides .- 1)
    none = zeros(Int, ndims(type))
    [
        emit(b, :reduce_window_sum, spread; window = s.window, strides = s.base, low = none,
            high = none, base_dilation = none .+ 1, window_dilation = s.dilation)
    ]
end

# Of a small window natively the elements at its places, one slice each, combined in its order: a
# nest computes them together with what is around them, along whichever axes lie together.
function flatten_call!(op::ReduceWindow, b, e, x)
    issmall(op, e) || return nothing
    s, number = sliding(e.attrs), sizes(e.outputs[1])
    y = with_padding(b, op, s, x[1])
    pieces = map(vec(collect(positions(s)))) do position
        start = collect(reverse(position)) .* s.dilation
        emit(b, :slice, y; start = start, limit = start .+ (number .- 1) .* s.strides .+ 1,
            strides = s.strides)
    end
    Atom[foldl((total, piece) -> emit(b, combining(op), total, piece), pieces)]
end
"The elements of such a window at most. Chosen."
const MOST_WRITTEN_OUT = 16
issmall(op::ReduceWindow, e) =
    1 < prod(Int.(e[:window])) <= MOST_WRITTEN_OUT && all(>(0), sizes(e.outputs[1])) &&
    accumulator(dtype(e.outputs[1])) === dtype(e.outputs[1])
with_padding(b, op, s::Slide, x) =
    all(iszero, s.low) && all(iszero, s.high) && all(isone, s.base) ? x :
    emit(b, :pad, x, Literal(neutral(op, dtype(x))); low = s.low, high = s.high,
        interior = s.base .- 1)

# The tangent of an extremum is that of the element that attains it, the first one of equals (unlike
# reduce_max, whose equals share).
function jvp(op::Union{ReduceWindowMax,ReduceWindowMin}, b, eqn, x, ẋ)
    select = op isa ReduceWindowMax ? :ge : :le
    y = emit!(b, op, x, eqn.attrs)
    y, emits(b, :select_and_gather_add, Atom[ẋ[1], x[1]]; select = select, eqn.attrs...)
end

# select_and_gather_add: for each window of `operand` the element of `values` at its extremum; zero
# where that is in the padding. select_and_scatter_add: the transpose; each place's cotangent is
# added at its window's extremum. Both are linear in the first operand and constant almost
# everywhere in the second.

@primitive SelectAndGather select_and_gather_add(select, window, strides, low, high, base_dilation,
    window_dilation)
@primitive SelectAndScatter select_and_scatter_add(select, window, strides, low, high)
const Selection = Union{SelectAndGather,SelectAndScatter}

linear_operands(::Selection, eqn) = (1,)
function jvp(op::Selection, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    y, ẋ[1] === nothing ? nothings(1) : Vector{MaybeAtom}(emit!(b, op, Atom[ẋ[1], x[2]], eqn.attrs))
end

undilated(attrs) = (ones_ = ones(Int, length(attrs[:window]));
Slide(attrs[:window], attrs[:strides], attrs[:low], attrs[:high], ones_, ones_))
slide_of(::SelectAndGather, attrs) = sliding(attrs)
slide_of(::SelectAndScatter, attrs) = undilated(attrs)

function infer(op::Selection, types, attrs)
    first, operand = types
    same_dtypes(op, types)
    operand.dtype <: AbstractFloat && attrs[:select] in (:ge, :le) ||
        infer_error(op, "does not select by $(attrs[:select]) from $(type_text(operand))")
    shape = places(op, slide_of(op, attrs), operand.shape)
    expected, result = op isa SelectAndGather ? (operand.shape, shape) : (shape, operand.shape)
    first.shape == expected ||
        infer_error(op, "$(type_text(first)) and $(type_text(operand)) do not fit together")
    [TensorType(operand.dtype, result)]
end

"""
Calls `found(place, index)` for each window: the index, in the padded array, of the extremum.
`nothing` stands for `start`."""
function extrema_of_windows(found, select, keys::Array, s::Slide, out, start)
    prefers = select === :ge ? (>=) : (<=)
    windows = [view(LinearIndices(keys), reached(s, position, out)...) for position in positions(s)]
    for place in CartesianIndices(Tuple(reverse(out)))
        best, index = start, nothing
        for window in windows
            i = window[place]
            best !== nothing && prefers(best, keys[i]) || ((best, index) = (keys[i], i))
        end
        found(place, index)
    end
end
worst(select, T) = convert(T, select === :ge ? -Inf : Inf)

# XLA's reduction begins with the neutral element, so an infinite one that is no better leaves the
# tangent zero.
function evaluate(::SelectAndGather, x, attrs, types)
    T, s, y = types[1].dtype, sliding(attrs), fill!(uninitialized(types[1]), 0)
    isempty(y) && return [y]
    start = worst(attrs[:select], T)
    keys, values = padded(x[2], start, s), padded(x[1], 0, s)
    extrema_of_windows(attrs[:select], keys, s, Int.(types[1].shape), start) do place, index
        index === nothing || (y[place] = values[index])
    end
    [y]
end

function evaluate(::SelectAndScatter, x, attrs, types)
    T, s, source = types[1].dtype, undilated(attrs), x[1]
    keys = padded(x[2], worst(attrs[:select], T), s)
    total = zeros(accumulator(T), size(keys))
    extrema_of_windows((place, index) -> total[index] += source[place], attrs[:select], keys, s,
        row_shape(source), nothing)
    back = Slide(s.window, s.strides, .-s.low, .-s.high, s.base, s.dilation)
    [rounded(T, padded(total, 0, back))]
end

# Gaps in the operand are filled with what no window prefers; JAX has no transpose for gaps in the
# window either.
function transpose(::SelectAndGather, b, eqn, ȳ, x)
    s, type = sliding(eqn.attrs), aval(x[1])
    all(==(1), s.dilation) ||
        throw(
            UnsupportedPrimitive("select_and_gather_add",
                "has no transpose for a window with dilation $(s.dilation)", eqn.source)
        )
    none, gaps = zeros(Int, ndims(type)), s.base .- 1
    filler = Literal(worst(eqn[:select], type.dtype))
    operand =
        all(==(0), gaps) ? x[2] :
        emit(b, :pad, x[2], filler; low = none, high = none, interior = gaps)
    x̄ = emit(b, :select_and_scatter_add, ȳ[1], operand; select = eqn[:select], window = s.window,
        strides = s.strides, low = s.low, high = s.high)
    all(==(0), gaps) ||
        (x̄ = emit(b, :slice, x̄; start = none, limit = shape(x̄), strides = s.base))
    MaybeAtom[x̄, nothing]
end

function transpose(::SelectAndScatter, b, eqn, ȳ, x)
    ones_ = ones(Int, length(eqn[:window]))
    MaybeAtom[
        emit(b, :select_and_gather_add, ȳ[1], x[2]; eqn.attrs..., base_dilation = ones_,
            window_dilation = ones_), nothing]
end

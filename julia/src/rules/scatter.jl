# Scatters: windows of an array of updates written into an operand, or combined with what is there.

# y = f(operand element, update); the order in which updates of one element are
# applied is not specified.
const SCATTERS = [(:Scatter, :scatter, (a, u) -> u), (:ScatterAdd, :scatter_add, +),
    (:ScatterSub, :scatter_sub, -), (:ScatterMul, :scatter_mul, *),
    (:ScatterMin, :scatter_min, smaller), (:ScatterMax, :scatter_max, larger)]
for (type, title, combine) in SCATTERS
    @eval begin
        @primitive $type $title(update_window_dims, inserted_window_dims,
            scatter_dims_to_operand_dims, operand_batching_dims, scatter_indices_batching_dims,
            mode, sorted, unique)
        combiner(::$type) = $combine
    end
end
const AnyScatter = Union{Scatter,ScatterAdd,ScatterSub,ScatterMul,ScatterMin,ScatterMax}

"The windows of a scatter; their sizes are those of the updates."
function Windows(::AnyScatter, attrs, rank, updates::Shape)
    window, collapsed, batching = (attrs[:update_window_dims], attrs[:inserted_window_dims],
        attrs[:operand_batching_dims])
    sizes = Iterators.Stateful(updates[k+1] for k in window)
    full = Dim[
        k in collapsed || k in batching || isempty(sizes) ? 1 : popfirst!(sizes)
        for k in 0:rank-1
    ]
    Windows(window, collapsed, attrs[:scatter_dims_to_operand_dims], batching,
        attrs[:scatter_indices_batching_dims], full, attrs[:mode])
end
placement(::AnyScatter, w::Windows) =
    Attributes(:update_window_dims => w.window, :inserted_window_dims => w.collapsed,
        :scatter_dims_to_operand_dims => w.map, :operand_batching_dims => w.batching,
        :scatter_indices_batching_dims => w.indices_batching)
Windows(op::AnyScatter, eqn::Equation) =
    Windows(op, eqn.attrs, ndims(aval(eqn.inputs[1])), shape(eqn.inputs[3]))

function infer(op::AnyScatter, types, attrs)
    length(types) == 3 || infer_error(op, "takes an operand, indices and updates")
    x, indices, updates = types
    same_dtypes(op, [x, updates])
    all(k -> 0 <= k < ndims(updates), attrs[:update_window_dims]) ||
        infer_error(op, "the window axes do not fit $(type_text(updates))")
    expected = check_windows(op, Windows(op, attrs, ndims(x), updates.shape), x, indices)
    updates.shape == expected ||
        infer_error(op,
            "the updates are $(type_text(updates)), the indices ask for the shape $expected")
    [x]
end

# XLA leaves out windows that reach outside, in part or whole; `clip` moves them inside first.
function evaluate(op::AnyScatter, x, attrs, types)
    w = Windows(op, attrs, ndims(x[1]), Shape(row_shape(x[3])))
    places = place(w, row_shape(x[1]), x[2], row_shape(x[3]); clip = w.mode === :clip)
    [combine_windows!(combiner(op), copy(x[1]), x[3], places...)]
end

function combine_windows!(f, y, updates, starts, inside, batch, window)
    for (start, at) in zip(starts, batch)
        start === nothing && continue
        for (i, j) in zip(inside, window)
            y[start+i+1] = f(y[start+i+1], updates[at+j+1])
        end
    end
    y
end

"""
Where the one window begins, and the update with the window's shape; `nothing`s where there are
more, or it is not known."""
function only_window(b, eqn, known)
    w, (x, indices, u) = Windows(eqn.op, eqn), eqn.inputs
    start = only_start(w, x, known(indices); clip = w.mode === :clip)
    start === nothing ? (nothing, nothing) : (start, shaped(b, u, w.sizes))
end
function static_windows(::Scatter, b, eqn, known)
    start, u = only_window(b, eqn, known)
    start === nothing && return nothing
    T = dtype(eqn.inputs[2])
    emit(b, :dynamic_update_slice, eqn.inputs[1], u, (Literal(convert(T, s)) for s in start)...)
end
function static_windows(op::Union{ScatterAdd,ScatterSub}, b, eqn, known)
    start, u = only_window(b, eqn, known)
    start === nothing && return nothing
    op isa ScatterSub && (u = emit(b, :neg, u))
    x = aval(eqn.inputs[1])
    padded = emit(b, :pad, u, zeros_of(b, TensorType(x.dtype)); low = Shape(start),
        high = Shape(x.shape .- start .- shape(u)), interior = zeros(Int, length(start)))
    emit(b, :add, eqn.inputs[1], padded)
end

"`scatter(op, …)` and `gather(…)` with the windows and flags of an equation."
like_equation(eqn) = (sorted = eqn[:sorted], unique = eqn[:unique])
again(b, op, eqn, operand, indices, updates) =
    scatter(b, op, Windows(eqn.op, eqn), operand, indices, updates; like_equation(eqn)...)
gathered(b, eqn, operand, indices) =
    gather(b, Windows(eqn.op, eqn), operand, indices; like_equation(eqn)...)

# scatter_add, scatter_sub: y = x ± S u with the linear map S, whose transpose is gather.

const AdditiveScatter = Union{ScatterAdd,ScatterSub}
linear_operands(::AdditiveScatter, eqn) = (1, 3)

function jvp(op::AdditiveScatter, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    ẏ = ẋ[3] === nothing ? ẋ[1] : again(b, name(op), eqn, instantiate(b, ẋ[1], x[1]), x[2], ẋ[3])
    y, MaybeAtom[ẏ]
end

function transpose(op::AdditiveScatter, b, eqn, ȳ, x)
    ū = islinear(x[3]) ? gathered(b, eqn, ȳ[1], x[2]) : nothing
    islinear(x[3]) && op isa ScatterSub && (ū = emit(b, :neg, ū))
    MaybeAtom[islinear(x[1]) ? ȳ[1] : nothing, nothing, ū]
end

# scatter_mul: linear in the operand, and in the updates where no two meet.

linear_operands(::ScatterMul, eqn) = (1,)

function jvp(op::ScatterMul, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    ẏ = ẋ[1] === nothing ? nothing : again(b, :scatter_mul, eqn, ẋ[1], x[2], x[3])
    if ẋ[3] !== nothing
        require_unique(eqn, "its derivative in the updates needs unique indices")
        placed = again(b, :scatter_add, eqn, zeros_of(b, aval(x[1])), x[2], ẋ[3])
        ẏ = add_maybe(b, ẏ, emit(b, :mul, x[1], placed))
    end
    y, MaybeAtom[ẏ]
end

function transpose(op::ScatterMul, b, eqn, ȳ, x)
    islinear(x[1]) &&
        return MaybeAtom[again(b, :scatter_mul, eqn, ȳ[1], x[2], x[3]), nothing, nothing]
    require_unique(eqn, "its transpose in the updates needs unique indices")
    MaybeAtom[nothing, nothing, gathered(b, eqn, emit(b, :mul, ȳ[1], x[1]), x[2])]
end

require_unique(eqn, message) =
    eqn[:unique] ||
    throw(
        UnsupportedPrimitive(string(name(eqn.op)),
            message * ": promise them with unique_indices=True", eqn.source)
    )

# scatter: the last writer wins, and which is last is not specified.

function jvp(op::Scatter, b, eqn, x, ẋ)
    ẋ₁, u̇ = instantiate(b, ẋ[1], x[1]), instantiate(b, ẋ[3], x[3])
    eqn[:unique] && return (emit!(b, op, x, eqn.attrs),
        MaybeAtom[again(b, :scatter, eqn, ẋ₁, x[2], u̇)])
    # As JAX does: write numbers of the updates, see who won, and let the winners alone through. The
    # result itself is computed the same way, since two scatters may disagree on who was last.
    updates = aval(x[3])
    count = size_of(updates.shape)
    T = index_dtype(count)
    number = emit(b, :add, emit(b, :reshape, iota(b, T, [count], 0); shape = updates.shape),
        Literal(one(T)))
    written = again(b, :scatter, eqn, zeros_of(b, TensorType(T, shape(x[1]))), x[2], number)
    kept = Traced(b, emit(b, :eq, written, Literal(zero(T))))
    won = Traced(b, emit(b, :eq, gathered(b, eqn, written, x[2]), number))
    through(mask, v) = where_(mask, Traced(b, v), 0).atom
    combined(operand, update) =
        again(b, :scatter_add, eqn, through(kept, operand), x[2], through(won, update))
    Atom[combined(x[1], x[3])], MaybeAtom[combined(ẋ₁, u̇)]
end

linear_operands(::Scatter, eqn) = (1, 3)

function transpose(op::Scatter, b, eqn, ȳ, x)
    require_unique(eqn, "its transpose needs unique indices")
    x̄ = islinear(x[1]) ? again(b, :scatter, eqn, ȳ[1], x[2], zeros_of(b, aval(x[3]))) : nothing
    MaybeAtom[x̄, nothing, islinear(x[3]) ? gathered(b, eqn, ȳ[1], x[2]) : nothing]
end

# scatter_min, scatter_max: an element's tangent is the mean over all that attain its value, the
# operand included. JAX weights the same contenders alike; here their number comes from one
# scatter_add over the operand. What is NaN attains it: the result is NaN then.

function jvp(op::Union{ScatterMin,ScatterMax}, b, eqn, x, ẋ)
    x = computed_once(b, x)
    y = emit!(b, op, x, eqn.attrs)
    T = dtype(x[1])
    attains(v, target) =
        cast(b, emit(b, :or, emit(b, :eq, v, target), emit(b, :ne, v, v)), T)
    kept, won = attains(x[1], y[1]), attains(x[3], gathered(b, eqn, y[1], x[2]))
    contenders = again(b, :scatter_add, eqn, kept, x[2], won)
    masked(t, mask, v) = t === nothing ? zeros_of(b, aval(v)) : emit(b, :mul, t, mask)
    total = again(b, :scatter_add, eqn, masked(ẋ[1], kept, x[1]), x[2], masked(ẋ[3], won, x[3]))
    y, MaybeAtom[emit(b, :div, total, contenders)]
end

# ---- what a scatter overwrites: where windows meet, each has the same old elements

overwritten(::AnyScatter, b, eqn) = gathered(b, eqn, eqn.inputs[1], eqn.inputs[2])
write_back(::AnyScatter, b, eqn, result, part, indices) =
    again(b, :scatter, eqn, result, only(indices), part)

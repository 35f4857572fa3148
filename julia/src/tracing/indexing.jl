# Reading and writing elements and parts. Places that are known are slices, in which the passes see
# loops; traced places are clamped into the array, as those of JAX are.

const TracedIndex = TracedReal{<:Integer}
const KnownIndex = Union{Integer,AbstractRange{<:Integer},AbstractVector{<:Integer},Colon}

Base.to_index(i::TracedIndex) = i
Base.to_index(i::TracedReal) = throw(ArgumentError("invalid index: $i"))
Base.checkindex(::Type{Bool}, ::AbstractUnitRange, ::TracedIndex) = true
Base.checkindex(::Type{Bool}, ::AbstractUnitRange, ::AbstractArray{<:TracedIndex}) = true

# ---- one element

Base.@propagate_inbounds Base.getindex(x::TracedArray, i::Int) = element_of(x, i)
function element_of(x::TracedArray, i::Int)
    checkbounds(x, i)
    found = piece_at(x, i)
    found === nothing || return piece_element(x, found..., i)
    m = memory(x)
    m.value isa Literal && return traced_number(m.value)
    a = atom_in(recording(), m.value, m.recording)
    # in the shape in which it was written
    place = reverse(Tuple(CartesianIndices(julia_size(aval(a)))[i])) .- 1
    traced_number(slice_at(a, Dim[place...], Dim[(place .+ 1)...], Dim[]))
end
function piece_element(x, piece, from, i)
    a = atom_in(recording(), piece, x.memory.recording)
    isscalar(a) && return traced_number(a)
    k = i - from
    traced_number(slice_at(flat(a), Dim[k], Dim[k+1], Dim[]))
end
Base.getindex(x::TracedArray, i::Int...) = element_of(x, linear_index(x, i))
linear_index(x, i) = (checkbounds(x, i...); LinearIndices(x)[i...])

"A slice of an atom, with the shape that is left."
function slice_at(a::Atom, start, limit, kept, strides = ones(Int, length(start)))
    isempty(start) && return a
    y = emit_here(:slice, a; start = start, limit = limit, strides = strides)
    shape(y) == kept ? y : emit_here(:reshape, y; shape = Shape(kept))
end

function Base.setindex!(x::TracedArray, v, i::Int)
    checkbounds(x, i)
    o = open_memory(x).mirrored
    o === nothing ? write_piece!(x, i, atom_here(eltype(x)(v)), 1) : write_turned!(o, v, i)
    x
end
Base.setindex!(x::TracedArray, v, i::Int...) = setindex!(x, v, linear_index(x, i))

# ---- parts

function Base.getindex(x::TracedArray, I...)
    y = part_of(x, I...)
    y isa TracedArray || return y
    # never the array itself, which may be written to
    y.memory === x.memory && (y = copy(y))
    with_axes(y, index_axes(to_indices(x, I)))
end
index_axes(J) = Tuple(ax for j in J if j isa AbstractArray for ax in axes(j))
function part_of(x::TracedArray, I...)
    all(i -> i isa TracedIndex || i isa Integer, I) && length(I) in (1, ndims(x)) &&
        return mixed_element(x, I)
    length(I) == 1 && ndims(x) != 1 && !(I[1] isa CartesianIndex) &&
        return shaped_as_index(vec(x)[I[1]], I[1])
    J = known_indices(x, I)
    all(j -> j isa Int, J) && return x[J...]
    if is_last_slice(x, J)
        found = piece_at(x, slice_start(x, J))
        found !== nothing && x.memory.width == slice_width(x) &&
            return slice_of_atom(x, atom_in(recording(), found[1], x.memory.recording))
    end
    isempty(memory(x).pieces) || !is_small_part(J) || return small_part(x, J)
    y, d = x, 1
    y = any(j -> j isa AbstractRange, J) ? ranges_of(x, J) : x
    for j in J
        if j isa TracedIndex
            y = taken(y, d, reshape(traced(fill(j)), 1))
        elseif j isa AbstractArray && !(j isa AbstractRange)
            y = taken(y, d, vec(j))
        elseif j isa Int && size(y, d) != 1
            y = taken(y, d, [j])
        end
        d += 1
    end
    n = index_size(J)
    isempty(n) ? only_element(y) : reshape(y, n)
end
# Of a row of a few elements, `x[k, :]`, and its like each element is a piece.
const MOST_ELEMENTS = 16
is_small_part(J) =
    all(j -> j isa Int || j isa AbstractUnitRange{Int}, J) && prod(map(length, J)) <= MOST_ELEMENTS
places_of(x, J) = vec(LinearIndices(x)[map(j -> j isa Int ? (j:j) : j, J)...])
function small_part(x, J)
    y = filled_array(zero(eltype(x)), index_size(J))
    for (k, i) in enumerate(places_of(x, J))
        y.memory.pieces[k] = atom_here(element_of(x, i))
    end
    y
end
function write_small_part!(x, v, J)
    # all before the first is written: they may be elements of x
    atoms = map(atom_here, collect(Any, vec(values_for(x, v, map(length, J)))))
    foreach((i, a) -> write_piece!(x, i, a, 1), places_of(x, J), atoms)
    x
end

# A slice along the last dimension: `x[:, k]`.
is_last_slice(x, J) =
    length(J) == ndims(x) > 1 && J[end] isa Int && all(d -> J[d] == axes(x, d), 1:ndims(x)-1)
slice_width(x) = prod(size(x)[1:end-1])
slice_start(x, J) = 1 + (J[end] - 1) * slice_width(x)
slice_of_atom(x, a) =
    isscalar(a) ? filled_array(traced_number(a), size(x)[1:end-1]) :
    traced_array(shape(a) == program_shape(size(x)[1:end-1]) ? a :
                 emit_here(:reshape, a; shape = program_shape(size(x)[1:end-1])))

"The number in an array of one."
only_element(x::TracedArray) =
    traced_number(emit_here(:reshape, atom_here(x); shape = Dim[]))

shaped_as_index(y, i::AbstractArray) = reshape(y, index_size((i,)))
shaped_as_index(y, i) = y
index_size(J) = Tuple(n for j in J if j isa AbstractArray for n in size(j))

"Indices as Julia reads them: numbers, ranges, arrays, or traced."
function known_indices(x, I)
    any(i -> i isa AbstractArray{<:TracedReal{Bool}}, I) && untraceable(
        "an array is indexed by conditions that are traced: the size is not known, while " *
        "`select.(conditions, x, 0)` keeps the size")
    J = map(plain_index, to_indices(x, I))
    all(j -> j isa TracedIndex || j isa AbstractArray{<:TracedIndex}, J) || checkbounds(x, J...)
    J
end
plain_index(i::Integer) = Int(i)
plain_index(i::TracedIndex) = isknown(i) ? Int(i.atom.value) : i
plain_index(i::Base.Slice) = Base.OneTo(length(i))
plain_index(i::AbstractRange) = i
plain_index(i::AbstractArray{<:TracedIndex}) = traced(i)
plain_index(i::AbstractArray) = collect(Int, i)

"The part at ranges and known numbers; along other dimensions everything."
function ranges_of(x::TracedArray, J)
    at = map((j, n) -> j isa Int ? (j:1:j) : j isa AbstractRange ? (first(j):step(j):last(j)) :
                       (1:1:n), J, size(x))
    all(map((j, n) -> j == 1:n, at, size(x))) && return x
    low = reverse(map(j -> isempty(j) ? 0 : min(first(j), last(j)) - 1, at))
    high = reverse(map(j -> isempty(j) ? 0 : max(first(j), last(j)), at))
    strides = reverse(map(j -> abs(step(j)), at))
    y = emit_here(:slice, atom_here(x); start = Dim[low...], limit = Dim[high...],
        strides = Int[strides...])
    turned = Int[ndims(x) - d for d in 1:ndims(x) if step(at[d]) < 0]
    traced_array(isempty(turned) ? y : emit_here(:rev, y; dims = sort(turned)))
end

"The elements of dimension `d` at places that are an array's elements."
function taken(x::TracedArray, d, places::AbstractVector)
    axis, n = ndims(x) - d, length(places)
    # positions from 0, a window each
    starts = emit_here(:reshape, atom_here(traced(Int64.(places) .- 1)); shape = Dim[n, 1])
    full = collect(Dim, reverse(size(x)))
    full[axis+1] = 1
    traced_array(
        emit_here(:gather, atom_here(x), starts;
            offset_dims = Int[k for k in 0:ndims(x)-1 if k != axis], collapsed_slice_dims = [axis],
            start_index_map = [axis], operand_batching_dims = Int[],
            start_indices_batching_dims = Int[], slice_sizes = full, mode = :clip,
            fill_value = nothing, sorted = false, unique = false)
    )
end

# A place that is traced, in a function of elements: one for all, or (in a broadcast) each its own.
"Arrays that are not traced."
const PlainArray = AbstractArray{<:Union{AbstractFloat,Integer,Complex}}
const AnyIndex = Union{TracedIndex,Integer}
Base.getindex(x::PlainArray, i::TracedIndex, j::AnyIndex...) = mixed_element(traced(x), (i, j...))
Base.getindex(x::PlainArray, h::Integer, i::TracedIndex, j::AnyIndex...) =
    mixed_element(traced(x), (h, i, j...))
Base.getindex(x::PlainArray, i::AbstractArray{<:TracedIndex}) = traced(x)[i]
function mixed_element(x::TracedArray, i)
    all(isknown, i) && return x[map(plain_index, i)...]
    length(i) == 1 && return lane_elements(vec(x), i[1])
    strides = Base.size_to_strides(1, size(x)...)
    clamped = map((j, n) -> clamp(j, 1, n), i, size(x))
    lane_elements(vec(x), 1 + sum(map((j, s) -> (j - 1) * s, clamped, strides)))
end
function lane_elements(x::TracedVector, i)
    a = atom_here(i)
    y = taken(x, 1, TracedArray(flat(a), (Int(size_of(shape(a))),), recording()))
    traced_number(emit_here(:reshape, atom_here(y); shape = shape(a)))
end
flat(a::Atom) = emit_here(:reshape, a; shape = Dim[size_of(shape(a))])

# ---- writing parts

function Base.setindex!(x::TracedArray, v, I...)
    write_to(x, y -> y[I...] = v) && return x
    length(I) == 1 && ndims(x) != 1 && !(I[1] isa CartesianIndex) &&
        return (setindex!(vec(x), v, I[1]); x)
    J = known_indices(x, I)
    all(j -> j isa Int, J) && return setindex!(x, v, linear_index(x, J))
    is_last_slice(x, J) && length(x) > 0 && return write_piece!(x, slice_start(x, J),
        v isa Number ? atom_here(eltype(x)(v)) :
        atom_here(values_for(x, v, size(x)[1:end-1])), slice_width(x))
    is_small_part(J) && return write_small_part!(x, v, J)
    if all(j -> j isa Int || j isa TracedIndex || j isa AbstractUnitRange, J)
        write_window!(x, v, J)
    else
        write_places!(x, v, J)
    end
end

"The values for places of size n, as a traced array of the element type."
function values_for(x, v, n)
    v isa Number && return filled_array(eltype(x)(v), n)
    prod(n) == length(v) && filter(>(1), collect(n)) == filter(>(1), collect(size(v))) || throw(
        DimensionMismatch("an array of size $(size(v)) is written to places of size $n"))
    reshape(as_eltype(eltype(x), traced(v)), n)
end
function write_window!(x, v, J)
    update = values_for(x, v, map(j -> j isa AbstractRange ? length(j) : 1, J))
    starts = map(j -> Int64(1) * (j isa AbstractRange ? first(j) : j) - 1, reverse(J))
    y = emit_here(:dynamic_update_slice, atom_here(x), atom_here(update),
        map(s -> s isa Number && !(s isa TracedNumber) ? Literal(Int64(s)) : atom_here(s),
            starts)...)
    set_value!(x.memory, y)
    x
end
"Places that are no block: the array in memory order, with each place's linear index."
function write_places!(x, v, J)
    strides = Base.size_to_strides(1, size(x)...)
    rank = length(J)
    dims = map(j -> j isa AbstractArray ? length(j) : 1, J)
    linear = filled_array(TracedReal{Int64}(0), dims)
    for (d, j) in enumerate(J)
        along = j isa AbstractArray ? traced(collect_places(j)) : j
        lifted =
            along isa Number ? along :
            reshape(along, ntuple(k -> k == d ? length(j) : 1, rank))
        linear = linear .+ (lifted .- 1) .* strides[d]
    end
    n = prod(dims)
    starts = emit_here(:reshape, atom_here(linear); shape = Dim[n, 1])
    updates = emit_here(:reshape, atom_here(values_for(x, v, dims)); shape = Dim[n])
    elements = emit_here(:scatter, flat(atom_here(x)), starts, updates; update_window_dims = Int[],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        operand_batching_dims = Int[], scatter_indices_batching_dims = Int[], mode = :clip,
        sorted = false, unique = false)
    set_value!(x.memory, emit_here(:reshape, elements; shape = program_shape(size(x))))
    x
end
collect_places(j::AbstractArray{<:TracedNumber}) = vec(j)
collect_places(j) = collect(Int64, vec(j))

"Traced places of an array on the left of a `.=`."
struct TracedPlaces
    array::TracedArray
    indices::Tuple
end
istraced_index(i) = i isa TracedIndex || i isa AbstractArray{<:TracedIndex}
Broadcast.dotview(x::TracedArray, I...) =
    any(istraced_index, I) ? TracedPlaces(x, I) : Base.maybeview(x, I...)
function Broadcast.materialize!(x::TracedPlaces, bc::Broadcast.Broadcasted)
    n = size(x.array[x.indices...])
    x.array[x.indices...] = isempty(n) ? lanes(bc, n) : array_of_lanes(lanes(bc, n), n)
end
Broadcast.materialize!(x::TracedPlaces, v) =
    Broadcast.materialize!(x, Broadcast.broadcasted(identity, v))

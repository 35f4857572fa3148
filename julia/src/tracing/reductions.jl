# Reductions over all elements or over dimensions, and sums that run along one.

"The primitive of an operation, and what an empty reduction starts from."
reduction(::Union{typeof(+),typeof(Base.add_sum)}) = :reduce_sum
reduction(::Union{typeof(*),typeof(Base.mul_prod)}) = :reduce_prod
reduction(::typeof(max)) = :reduce_max
reduction(::typeof(min)) = :reduce_min
reduction(::typeof(&)) = :reduce_and
reduction(::typeof(|)) = :reduce_or
reduction(op) = nothing

struct NoStart end

Base.mapreduce(f, op, x::ArrayOfTraced; dims = :, init = NoStart()) =
    reduced_lanes(op, broadcast(f, x), dims, init)
Base.mapreduce(f, op, x::ArrayOfTraced, rest::AbstractArray...; dims = :, init = NoStart()) =
    reduced_lanes(op, map(f, x, rest...), dims, init)
Base.reduce(op, x::ArrayOfTraced; dims = :, init = NoStart()) =
    reduced_lanes(op, x, dims, init)
for (f, op) in ((:sum, Base.add_sum), (:prod, Base.mul_prod), (:maximum, max), (:minimum, min))
    @eval Base.$f(x::ArrayOfTraced; options...) = mapreduce(identity, $op, x; options...)
    @eval Base.$f(g, x::ArrayOfTraced; options...) = mapreduce(g, $op, x; options...)
end
for (f, op) in ((:all, :&), (:any, :|))
    @eval Base.$f(x::AbstractArray{TracedBool}; dims = :) = reduced_lanes($op, x, dims)
    @eval Base.$f(g::Function, x::ArrayOfTraced; dims = :) = mapreduce(g, $op, x; dims = dims)
end
Base.count(x::AbstractArray{TracedBool}) = sum(Int.(x))
Base.count(f, x::ArrayOfTraced) = count(broadcast(f, x))
Base.extrema(x::ArrayOfTraced) = minimum(x), maximum(x)

reduced_lanes(op, x::AbstractArray, dims, init) = start_with(op, init, reduced_lanes(op, x, dims))
reduced_lanes(op, x::AbstractArray, dims) =
    reduced_axes(x, reduced_lanes(op, traced(x), dims), dims)
reduced_axes(x, y, dims) = y isa AbstractArray ? with_axes(y, Base.reduced_indices(x, dims)) : y
start_with(op, ::NoStart, y) = y
start_with(op, init, y) = y isa AbstractArray ? op.(init, y) : op(init, y)

function reduced_lanes(op, x::TracedArray, dims)
    along = dims isa Colon ? collect(1:ndims(x)) : Int[d for d in dims if d <= ndims(x)]
    (op === Base.add_sum || op === +) && dtype(x) === Bool && (x = Int.(x))
    name_ = reduction(op)
    name_ === nothing && return folded_lanes(op, x, dims)
    isempty(x) && name_ in (:reduce_max, :reduce_min) &&
        throw(ArgumentError("the $(op)imum of an empty array"))
    y = emit_here(name_, atom_here(x); axes = sort!(Int[ndims(x) - d for d in along]))
    dims isa Colon ? traced_number(y) : reshape(traced_array(y), reduced_size(x, along))
end
reduced_size(x, along) = ntuple(d -> d in along ? 1 : size(x, d), ndims(x))

"Any other operation, from the left."
function folded_lanes(op, x::TracedArray, dims)
    dims isa Colon && return foldl(op, [x[k] for k in eachindex(x)])
    length(dims) == 1 || return foldl((y, d) -> folded_lanes(op, y, d), dims; init = x)
    parts = [selectdim(x, first(dims), k:k) for k in 1:size(x, first(dims))]
    foldl((a, b) -> op.(a, b), parts)
end

# ---- places

for (f, op) in ((:argmax, :argmax), (:argmin, :argmin))
    @eval Base.$f(x::TracedVector) =
        traced_number(emit_here($(QuoteNode(op)), atom_here(x); axis = 0, dtype = :i64)) + 1
end
for f in (:argmax, :argmin, :findmax, :findmin)
    @eval Base.$f(x::TracedArray; options...) = refuse_places($f)
end
refuse_places(f) = untraceable(
    "$f of a traced array of several dimensions would give places that are not known while a " *
    "function is traced: $f(vec(x)) counts the elements, `maximum` and `minimum` take `dims`")
Base.findmax(x::TracedVector) = maximum(x), argmax(x)
Base.findmin(x::TracedVector) = minimum(x), argmin(x)

# ---- along a dimension

for (f, op) in ((:cumsum, :cumsum), (:cumprod, :cumprod))
    @eval begin
        Base.$f(x::ArrayOfTraced; dims::Integer) = cumulated($(QuoteNode(op)), x, dims)
        Base.$f(x::ArrayOfTraced{1}; dims::Integer = 1) = cumulated($(QuoteNode(op)), x, dims)
    end
end
cumulated(op, x::AbstractArray, d) = with_axes(cumulated(op, traced(x), d), axes(x))
cumulated(op, x::TracedArray, d) =
    d > ndims(x) ? copy(x) :
    traced_array(emit_here(op, atom_here(x); axis = ndims(x) - d, reverse = false))
function Base.diff(x::ArrayOfTraced{1})
    Base.require_one_based_indexing(x)
    y = traced(x)
    y[2:end] .- y[1:end-1]
end

# ---- order

function Base.sort(x::TracedVector; rev::Bool = false, kw...)
    isempty(kw) || sort_refusal(kw)
    y = traced_array(emit_here(:sort, atom_here(x); dim = 0, stable = true, num_keys = 1))
    rev ? reverse(y) : y
end
function Base.sort(x::TracedArray; dims::Integer, rev::Bool = false, kw...)
    isempty(kw) || sort_refusal(kw)
    y = traced_array(
        emit_here(:sort, atom_here(x); dim = ndims(x) - dims, stable = true, num_keys = 1))
    rev ? reverse(y; dims = dims) : y
end
Base.sort!(x::TracedVector; kw...) = assign!(x, sort(x; kw...))
for K in (Int, OrdinalRange)
    @eval Base.partialsort(x::TracedVector, k::$K; kw...) = sort(x; kw...)[k]
    @eval Base.partialsort!(x::TracedVector, k::$K; kw...) = sort!(x; kw...)[k]
end
function Base.sortperm(x::TracedVector; rev::Bool = false, kw...)
    isempty(kw) || sort_refusal(kw)
    x = rev ? -x : x
    places = iota(open_recording().builder, Int64, [length(x)], 0)
    _, order = emit_here(primitive(:sort), Atom[atom_here(x), places],
        Attributes(:dim => 0, :stable => true, :num_keys => 1))
    traced_array(order) .+ 1
end
sort_refusal(kw) = untraceable(
    "traced values are sorted by their size: $(join(keys(kw), ", ")) cannot be given")

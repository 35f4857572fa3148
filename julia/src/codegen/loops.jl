# The code of a loop nest.

"`value` of each point goes to `pointer` at `at`."
struct Store
    value::Atom
    pointer::Symbol
    type::DataType
    at::Affine
end

"""
The values of all points are combined along the axes marked in `reduced`: in memory at `at`, or, where `pointer` is nothing, in the local
variable `total`. `type` is the accumulator's."""
struct Reduce
    value::Atom
    op::Primitive
    type::DataType
    reduced::Vector{Bool}
    pointer::Union{Symbol,Nothing}
    at::Affine
    total::Symbol
end

"""
The nest's body for a part of the last axis, and the values of its stores and reductions. `inland` is a simpler body for rows away from
the edges of padded arrays, with what must hold there.
"""
struct RowPart
    inner::UnitRange{Int}
    steps::Vector{Tuple{Symbol,Step,DataType}}
    stores::Vector{Any}
    reduces::Vector{Any}
    inland::Any
end
RowPart(inner, steps, stores, reduces) = RowPart(inner, steps, stores, reduces, nothing)

"More conditions than this along the last axis are decided at run time."
const MOST_PARTS = 9

"""
    emit_nest!(frame, domain, stores, reduces; roots)

Writes loops over `domain` that do all these in one pass. Accumulators must have been set to their neutral elements."""
function emit_nest!(s::Frame, domain::Vector{Int}, stores, reduces; roots = IdDict{Var,Equation}())
    any(==(0), domain) && return
    parts = built_parts(s, domain, stores, reduces, roots)
    domain, parts, stores, reduces = in_memory_order(collapsed(domain, parts, stores, reduces)...)
    chunks = chunk_count(s.generator, domain, parts, reduces)
    chunks > 1 ? write_parallel!(s, domain, parts, stores, reduces, chunks) : write_loops!(s.generator, domain, parts, stores, reduces)
end

function built_parts(s, domain, stores, reduces, roots)
    whole = 0:last_size(domain)-1
    nest, part = built(s, domain, whole, stores, reduces, roots)
    breaks = sort!(unique(nest.breaks))
    length(breaks) >= MOST_PARTS && return [part]
    inland(nest, part) = with_inland(nest, part, () -> built(s, domain, part.inner, stores, reduces, roots; inland = true))
    isempty(breaks) && return [inland(nest, part)]
    starts = vcat(0, breaks)
    stops = vcat(breaks, length(whole)) .- 1
    [inland(built(s, domain, a:b, stores, reduces, roots)...) for (a, b) in zip(starts, stops)]
end

function built(s, domain, inner, stores, reduces, roots; inland = false)
    nest = Nest(s, domain, inner, roots; inland = inland)
    value(a) = pointwise(nest, a, identity_index(nest))
    stored_values = Any[value(x.value) for x in stores]
    nest, RowPart(inner, nest.steps, stored_values, Any[value(x.value) for x in reduces])
end

# ---- neighbouring axes that memory does not tell apart become one

function collapsed(domain, parts, stores, reduces)
    for k in length(domain)-1:-1:1
        length(parts) == 1 || k + 1 < length(domain) || continue
        n = domain[k+1]
        joins(a::Affine) = domain[k] == 1 || (n == 1 && a.coefs[k+1] == 0) || a.coefs[k] == n * a.coefs[k+1]
        all(joins, positions(parts, stores, reduces)) && all(r -> joins_axes(r, domain, k), reduces) || continue
        merged(a::Affine) = Affine(n == 1 ? deleteat!(copy(a.coefs), k + 1) : deleteat!(copy(a.coefs), k), a.offset, a.dynamic)
        marks(r) = deleteat!(copy(r.reduced), n == 1 ? k + 1 : k)
        parts = [moved(merged, p, k + 1 < length(domain) ? p.inner : 0:domain[k]*n-1) for p in parts]
        stores = [Store(x.value, x.pointer, x.type, merged(x.at)) for x in stores]
        reduces = [Reduce(x.value, x.op, x.type, marks(x), x.pointer, merged(x.at), x.total) for x in reduces]
        domain = vcat(domain[1:k-1], domain[k] * n, domain[k+2:end])
    end
    domain, parts, stores, reduces
end
joins_axes(r::Reduce, domain, k) = domain[k] == 1 || domain[k+1] == 1 || r.reduced[k] == r.reduced[k+1]

positions(parts, stores, reduces) = Affine[Iterators.flatten(map(positions, parts))..., (x.at for x in stores)..., (x.at for x in reduces)...]
positions(p::RowPart) = Affine[(st.at for (_, st, _) in p.steps if !(st isa Apply))..., positions(p.inland)...]
moved(f, p::RowPart, inner = p.inner) =
    RowPart(inner, [(v, moved(f, st), T) for (v, st, T) in p.steps], p.stores, p.reduces, moved(f, p.inland, inner))
moved(f, s::Load) = Load(s.pointer, f(s.at))
moved(f, s::Position) = Position(f(s.at))
moved(f, s::Apply) = s

# ---- the order of the loops

"""
The axes put in the order in which most of memory is passed in sequence: the last becomes the one along which most accesses are
contiguous, stores counting more, and before it comes the one along which others are, if any."""
function in_memory_order(domain, parts, stores, reduces)
    (length(domain) < 2 || length(parts) > 1 || any(p -> p.inland !== nothing, parts)) && return domain, parts, stores, reduces
    gains = [contiguous_accesses(k, parts, stores, reduces) for k in eachindex(domain)]
    inner = gains[end] == maximum(gains) ? length(domain) : argmax(gains)
    others = [k for k in eachindex(domain) if k != inner]
    next = any(>(0), gains[others]) ? others[argmax(gains[others])] : others[end]
    permuted = vcat([k for k in others if k != next], next, inner)
    permuted == collect(eachindex(domain)) && return domain, parts, stores, reduces
    f(a::Affine) = Affine(a.coefs[permuted], a.offset, a.dynamic)
    domain[permuted], [moved(f, p, 0:domain[inner]-1) for p in parts],
        [Store(x.value, x.pointer, x.type, f(x.at)) for x in stores],
        [Reduce(x.value, x.op, x.type, x.reduced[permuted], x.pointer, f(x.at), x.total) for x in reduces]
end
contiguous_accesses(k, parts, stores, reduces) =
    count(a -> a.coefs[k] == 1, (st.at for p in parts for (_, st, _) in p.steps if st isa Load)) +
    2count(x -> x.at.coefs[k] == 1, stores) + count(r -> r.pointer !== nothing && r.at.coefs[k] == 1, reduces)

"Whether some accesses are contiguous along the last axis but one: rows are then cut so that both directions stay in the cache."
is_crossed(domain, part, stores) = length(domain) > 1 && domain[end] > TILE && domain[end-1] > 1 &&
    any(a -> a.coefs[end-1] == 1 && abs(a.coefs[end]) > 1, vcat(Affine[st.at for (_, st, _) in part.steps if st isa Load], Affine[x.at for x in stores]))
const TILE = 32

# ---- writing

"Writes the loops; `from` and `to` bound the first axis."
function write_loops!(g::Generator, domain, parts, stores, reduces; from = nothing, to = nothing, variables = Symbol[])
    isempty(domain) && return write_point!(g, with_branches(parts[1]), stores, reduces, variables)
    length(variables) == length(domain) - 1 && return write_row!(g, parts, stores, reduces, variables, from, to)
    length(variables) == length(domain) - 2 && length(parts) == 1 && is_crossed(domain, parts[1], stores) &&
        return write_tiles!(g, domain, parts, stores, reduces, something(from, 0), something(to, domain[end-1]), variables)
    counted_loop!(g, something(to, domain[length(variables)+1]); from = something(from, 0)) do i
        write_loops!(g, domain, parts, stores, reduces; variables = vcat(variables, i))
    end
end

"The last two axes in tiles."
function write_tiles!(g, domain, parts, stores, reduces, from, to, variables)
    stepped_loop!(g, from, to) do above, below
        stepped_loop!(g, 0, domain[end]) do left, right
            counted_loop!(g, below; from = above) do i
                write_row!(g, parts, stores, reduces, vcat(variables, i), left, right)
            end
        end
    end
end

"`f(a, b)` writes what is done for each stretch a … b - 1 of from … to - 1."
function stepped_loop!(f, g::Generator, from, to; step = TILE)
    at = local!(g, Int, from)
    loop!(g, :($(<)($at, $to))) do
        stop = local!(g, Int, :($(min)($(+)($at, $step), $to)))
        f(at, stop)
        emit_code!(g, :($at = $stop))
    end
end

# Long rows are cut up: sums lose less to rounding, and what is checked before it is computed stays in the cache.
const LONG_ROW, ROW_BLOCK = 4096, 2048

"Writes the loop over the last axis, or over its positions from `from` to `to`."
function write_row!(g, parts, stores, reduces, variables, from, to)
    along = [r for r in reduces if r.reduced[end]]
    checks = length(parts) == 1 && length(parts[1].inner) > 1 ? guards(parts[1]) : Guard[]
    row(a, b) = write_sums!(g, parts, stores, reduces, along, checks, variables, a, b)
    ((isempty(along) && isempty(checks)) || length(parts) > 1 || length(parts[1].inner) <= LONG_ROW) && return row(from, to)
    stepped_loop!(row, g, something(from, 0), something(to, length(parts[1].inner)); step = ROW_BLOCK)
end

function write_sums!(g, parts, stores, reduces, along, checks, variables, from, to)
    sums = IdDict{Reduce,Symbol}(r => local!(g, lane(r.op, r.type), lane_start(r)) for r in along)
    for part in parts
        first_, stop = something(from, first(part.inner)), something(to, last(part.inner) + 1)
        write_inland!(g, part, variables) do here
            write_checked!(g, here, checks, variables, first_, stop) do chosen
                write_inner!(g, chosen, stores, reduces, sums, variables, first_, stop)
            end
        end
    end
    for r in along
        combine!(g, r, vcat(variables, 0), :($(from_lane)($(r.op), $(r.type), $(sums[r]))))
    end
end

function write_inner!(g, part, stores, reduces, sums, variables, from, to)
    alone = length(part.inner) == 1
    body(i) = write_point!(g, alone ? with_branches(part) : part, stores, reduces, vcat(variables, i), sums)
    alone ? body(local!(g, Int, from)) : row_loop!(body, g, part, sums, variables, from, to)
end

function write_point!(g, part, stores, reduces, variables, sums = IdDict{Reduce,Symbol}())
    for (v, step, T) in part.steps
        emit_code!(g, :($v = $(step_expression(step, T, variables))))
    end
    for (x, value) in zip(stores, part.stores)
        emit_code!(g, :($(unsafe_store!)($(x.pointer), $(stored)($(x.type), $value), $(expression(x.at + 1, variables)))))
    end
    for (r, value) in zip(reduces, part.reduces)
        if haskey(sums, r)
            a = sums[r]
            emit_code!(g, :($a = $(combine_lanes)($(r.op), $(r.type), $a, $(to_lane)($(r.op), $(r.type), $(stored)($(r.type), $(working)($value))))))
        else
            combine!(g, r, variables, :($(working)($value)))
        end
    end
end

step_expression(s::Load, T, variables) = :($(unsafe_load)($(s.pointer), $(expression(s.at + 1, variables))))
step_expression(s::Position, T, variables) = expression(s.at, variables)
step_expression(s::Apply, T, variables) =
    s.f in KEEP_DTYPE ? :($(s.f)($(s.operands...))) : :($(stored)($T, $(s.f)($(s.operands...))))
# Functions whose result has the dtype that the primitive's has; to say so again costs the compiler time.
const KEEP_DTYPE = (+, -, *, &, |, ifelse, clamp_position, as_position, within_bounds)

function combine!(g, r::Reduce, variables, value)
    f = combiner(r.op)
    if r.pointer === nothing
        emit_code!(g, :($(r.total) = $(stored)($(r.type), $f($(r.total), $value))))
    else
        at = local!(g, Int, expression(r.at + 1, variables))
        emit_code!(g, :($(unsafe_store!)($(r.pointer), $(stored)($(r.type), $f($(unsafe_load)($(r.pointer), $at), $value)), $at)))
    end
end

"A number in its final dtype; what a kernel computes may be wider."
stored(::Type{T}, x) where {T} = x isa T ? x : rounded_number(T, x)
rounded_number(::Type{T}, x) where {T<:AbstractFloat} = convert(T, x)
rounded_number(::Type{T}, x::Complex) where {T<:Complex} = T(real(x), imag(x))
rounded_number(::Type{Complex{T}}, x::Real) where {T} = Complex{T}(x, zero(T))
rounded_number(::Type{T}, x::Integer) where {T<:Integer} = x % T
rounded_number(::Type{Bool}, x::Integer) = x != 0

# Along the last axis an accumulator is one of the processor's lanes. LLVM orders integers in lanes but not floats with NaN: floats
# therefore go by an integer of the same order, with NaN at the end that wins.
const Extremum = Union{ReduceMax,ReduceMin}
const Ordered = Union{Float32,Float64}
lane(op::Primitive, T) = T
lane(op::Extremum, ::Type{T}) where {T<:Ordered} = signed(unsigned_of(T))
lane_start(r::Reduce) = to_lane(r.op, r.type, neutral(r.op, r.type))
combine_lanes(op::Primitive, T, a, b) = stored(T, combiner(op)(a, b))
combine_lanes(op::ReduceMax, ::Type{T}, a, b) where {T<:Ordered} = ifelse(a > b, a, b)
combine_lanes(op::ReduceMin, ::Type{T}, a, b) where {T<:Ordered} = ifelse(a < b, a, b)
to_lane(op::Primitive, T, x) = x
from_lane(op::Primitive, T, x) = x
in_order(bits::T) where {T<:Signed} = bits ⊻ ((bits >> (8sizeof(T) - 1)) & typemax(T))
to_lane(op::ReduceMax, ::Type{T}, x) where {T<:Ordered} = (I = lane(op, T); ifelse(x != x, typemax(I), in_order(reinterpret(I, x))))
to_lane(op::ReduceMin, ::Type{T}, x) where {T<:Ordered} = (I = lane(op, T); ifelse(x != x, typemin(I), in_order(reinterpret(I, x))))
from_lane(op::Extremum, ::Type{T}, x) where {T<:Ordered} = reinterpret(T, in_order(x))

# The code of a loop nest.

"""
    emit_nest!(frame, domain, stores, reduces; roots)

Writes loops over `domain` that do all these in one pass. Accumulators must have been set to their
neutral elements."""
function emit_nest!(s::Frame, domain::Vector{Int}, stores, reduces; roots = IdDict{Var,Equation}())
    any(==(0), domain) && return
    parts = built_parts(s, domain, stores, reduces, roots)
    g = s.generator
    is_small(g, domain, parts, stores, reduces) &&
        write_small!(g, domain, only(parts), stores, reduces) &&
        return note!(g.notes, LoopNote(1))
    domain, parts, stores, reduces = in_memory_order(collapsed(domain, parts, stores, reduces)...)
    chunks = chunk_count(g, domain, parts, reduces)
    note!(g.notes, LoopNote(chunks))
    chunks > 1 ? write_parallel!(s, domain, parts, stores, reduces, chunks) :
    write_loops!(g, domain, parts, stores, reduces)
end

function built_parts(s, domain, stores, reduces, roots)
    whole = 0:last_size(domain)-1
    nest, part = built(s, domain, whole, stores, reduces, roots)
    breaks = sort!(unique(nest.breaks))
    length(breaks) >= MOST_PARTS && return [part]
    interior(nest, part) =
        with_interior(nest, part,
            () -> built(s, domain, part.inner, stores, reduces, roots; interior = true))
    isempty(breaks) && return [interior(nest, part)]
    starts = vcat([0], breaks)
    stops = vcat(breaks, [length(whole)]) .- 1
    [interior(built(s, domain, a:b, stores, reduces, roots)...) for (a, b) in zip(starts, stops)]
end

function built(s, domain, inner, stores, reduces, roots; interior = false)
    nest = Nest(s, domain, inner, roots; interior = interior)
    value(a) = pointwise(nest, a, identity_index(nest))
    stored_values = Any[value(x.value) for x in stores]
    nest, RowPart(inner, nest.steps, stored_values, Any[value(x.value) for x in reduces])
end

# ---- writing

"Writes the loops; `from` and `to` bound the first axis of those that are left."
function write_loops!(g::Generator, domain, parts, stores, reduces; from = nothing, to = nothing,
    variables = Any[], chunk = WHOLE)
    isempty(domain) && return write_point!(g, with_branches(parts[1]), stores, reduces, variables)
    length(variables) == length(domain) - 1 &&
        return write_row!(g, parts, stores, reduces, variables, from, to)
    length(variables) == length(domain) - 2 && length(parts) == 1 &&
        is_crossed(domain, parts[1], stores) &&
        return write_tiles!(g, domain, parts, stores, reduces, something(from, 0),
            something(to, domain[end-1]), variables)
    from, to = something(from, 0), something(to, domain[length(variables)+1])
    in_sum_blocks!(g, domain, reduces, variables, from, to, chunk) do own, a, b
        counted_loop!(g, b; from = a) do i
            write_loops!(g, domain, parts, stores, own; variables = Any[variables..., i],
                chunk = chunk)
        end
    end
end

"The last two axes in tiles."
function write_tiles!(g, domain, parts, stores, reduces, from, to, variables)
    stepped_loop!(g, from, to) do above, below
        stepped_loop!(g, 0, domain[end]) do left, right
            counted_loop!(g, below; from = above) do i
                write_row!(g, parts, stores, reduces, Any[variables..., i], left, right)
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

"Writes the loop over the last axis, or over its positions from `from` to `to`."
function write_row!(g, parts, stores, reduces, variables, from, to)
    checks = length(parts) == 1 && length(parts[1].inner) > 1 ? fast_paths(parts[1]) : FastPath[]
    row(own, a, b) = write_sums!(g, parts, stores, own, checks, variables, a, b)
    n, size = length(parts[1].inner), row_block(parts[1], reduces)
    (
        (isempty(checks) && !any(r -> r.reduced[end], reduces)) || length(parts) > 1 || n <= 2size
    ) && return row(reduces, from, to)
    # What is left of blocks of functions is of a known length, which is cut into vectors.
    rest = from === to === nothing && size == ROW_BLOCK_OF_FUNCTIONS ? n % size : 0
    from, to = something(from, 0), something(to, n)
    in_row_sums!(g, reduces, variables, n, from, rest == 0 ? to : n - rest, size) do own, a, b
        stepped_loop!((c, d) -> row(own, c, d), g, a, b; step = size)
    end
    rest == 0 || row(reduces, n - rest, n)
end

"How many positions of a row go at a time: of functions, with which LLVM takes few lanes, fewer."
row_block(part::RowPart, reduces) =
    any(islong, part.steps) && any(r -> r.reduced[end] && adds_floats(r), reduces) ?
    ROW_BLOCK_OF_FUNCTIONS : ROW_BLOCK

function write_sums!(g, parts, stores, reduces, checks, variables, from, to)
    along = [r for r in reduces if r.reduced[end]]
    sums = IdDict{Reduce,Symbol}(r => local!(g, lane(r.op, r.type), lane_start(r)) for r in along)
    for part in parts
        first_, stop = something(from, first(part.inner)), something(to, last(part.inner) + 1)
        write_interior!(g, part, variables) do here
            write_versions!(g, here, checks, variables, first_, stop) do chosen
                write_inner!(g, chosen, stores, reduces, sums, variables, first_, stop)
            end
        end
    end
    for r in along
        combine!(g, r, Any[variables..., 0], :($(from_lane)($(r.op), $(r.type), $(sums[r]))))
    end
end

function write_inner!(g, part, stores, reduces, sums, variables, from, to)
    point(part, i) = write_point!(g, part, stores, reduces, Any[variables..., i], sums)
    length(part.inner) == 1 && return point(with_branches(part), local!(g, Int, from))
    fixed, varying = along_row(part)
    write_steps!(g, fixed, variables)
    by_reciprocals!(g, varying) do chosen
        row_loop!(i -> point(chosen, i), g, chosen, sums, variables, from, to)
    end
end

"""
The steps that are the same for all of a row, and the part without them. LLVM cannot tell that a
store to another array does not change what they load."""
function along_row(part::RowPart)
    varies = Set{Symbol}()
    for (v, step, _) in part.steps
        varies_along_row(step, varies) && push!(varies, v)
    end
    [s for s in part.steps if !(s[1] in varies)],
    with_steps(part, [s for s in part.steps if s[1] in varies])
end
varies_along_row(s::Union{Load,Position}, varies) =
    s.at.coefs[end] != 0 || any(((d, _),) -> d in varies, s.at.dynamic)
varies_along_row(s::Apply, varies) = any(x -> x isa Expr || x in varies, s.operands)

function write_point!(g, part, stores, reduces, variables, sums = IdDict{Reduce,Symbol}())
    write_steps!(g, part.steps, variables)
    for (x, value) in zip(stores, part.stores)
        emit_code!(g, store_expression(x, value, variables))
    end
    for (r, value) in zip(reduces, part.reduces)
        if haskey(sums, r)
            a = sums[r]
            emit_code!(g,
                :(
                    $a = $(combine_lanes)($(r.op), $(r.type), $a,
                        $(to_lane)($(r.op), $(r.type), $(stored)($(r.type), $(working)($value))))
                ))
        else
            combine!(g, r, variables, :($(working)($value)))
        end
    end
end

write_steps!(g, steps, variables) =
    for (v, step, T) in steps
        emit_code!(g, :($v = $(step_expression(step, T, variables))))
    end
step_expression(s::Load, T, variables) =
    :($(unsafe_load)($(s.pointer), $(expression(s.at + 1, variables))))
step_expression(s::Position, T, variables) = expression(s.at, variables)
step_expression(s::Apply, T, variables) =
    s.f in KEEP_DTYPE ? :($(s.f)($(s.operands...))) : :($(stored)($T, $(s.f)($(s.operands...))))
store_expression(x::Store, value, variables) =
    :($(unsafe_store!)($(x.pointer), $(stored)($(x.type), $value),
        $(expression(x.at + 1, variables))))
# Functions whose result has the dtype that the primitive's has; to say so again
# costs the compiler time.
const KEEP_DTYPE = Base.IdSet{Any}((+, -, *, muladd, &, |, ifelse, clamp_position, as_position,
    within_bounds))

function combine!(g, r::Reduce, variables, value)
    if r.pointer === nothing
        emit_code!(g, :($(r.total) = $(accumulated(r, r.total, value))))
    else
        at = local!(g, Int, expression(r.at + 1, variables))
        update_element!(old -> accumulated(r, old, value), g, r.pointer, at)
    end
end
accumulated(r::Reduce, old, value) = :($(stored)($(r.type), $(combiner(r.op))($old, $value)))

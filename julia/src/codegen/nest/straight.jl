# Small nests without loops. Where the last axis is shorter than a vector register, LLVM makes
# scalars of the loop over it; of straight-line code it joins neighbouring results along all axes
# into vectors, which for divisions is worth the longer code.

"The most points of such a nest, and the most steps of all its points together."
const STRAIGHT_POINTS, STRAIGHT_STEPS = 64, 1000
"The bytes that a row must be shorter than, a register's."
const STRAIGHT_ROW = 32

function is_straight(domain, parts, reduces)
    length(domain) > 1 && length(parts) == 1 || return false
    steps, points = only(parts).steps, prod(domain)
    points <= STRAIGHT_POINTS && points * length(steps) <= STRAIGHT_STEPS &&
        any(isdivision, steps) && !any(islong, steps) &&
        domain[end] * maximum(Int[sizeof(T) for (_, _, T) in steps]) < STRAIGHT_ROW &&
        only(parts).interior === nothing && all(r -> r.pointer !== nothing, reduces)
end
isdivision((_, step, T)) = step isa Apply && step.f === primitive(:div).kernel

"Writes what `write_loops!` writes, point by point: all that is read before all that is written."
function write_straight!(g::Generator, domain, part, stores, reduces)
    written = Any[]
    totals = [Pair{Any,Symbol}[] for _ in reduces]
    for point in Iterators.product((0:n-1 for n in Iterators.reverse(domain))...)
        at, names = Any[Iterators.reverse(point)...], Dict{Symbol,Symbol}()
        for (v, step, T) in part.steps
            names[v] = local!(g, T, with_names(step_expression(step, T, at), names))
        end
        for (x, value) in zip(stores, part.stores)
            push!(written, with_names(store_expression(x, value, at), names))
        end
        for (r, value, sums) in zip(reduces, part.reduces, totals)
            add_to_total!(g, sums, r, with_names(:($(working)($value)), names),
                expression(r.at + 1, at))
        end
    end
    for (r, sums) in zip(reduces, totals), (place, total) in sums
        push!(written, :($(unsafe_store!)($(r.pointer), $total, $place)))
    end
    foreach(e -> emit_code!(g, e), written)
end

"`sums`: the local variable of each place in memory that has got a value."
function add_to_total!(g, sums, r::Reduce, value, place)
    k = findfirst(p -> first(p) == place, sums)
    old = k === nothing ? :($(unsafe_load)($(r.pointer), $place)) : last(sums[k])
    total = local!(g, r.type, accumulated(r, old, value))
    k === nothing ? push!(sums, place => total) : (sums[k] = place => total)
end

with_names(x, names) = x
with_names(v::Symbol, names) = get(names, v, v)
with_names(e::Expr, names) = Expr(e.head, Any[with_names(a, names) for a in e.args]...)

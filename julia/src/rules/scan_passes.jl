# What passes ask of scans: dead results, equal results, constants, loops that may be one.

function prune(op::Scan, eqn, used)
    body = eqn[:body]
    used_carry, used_ys = result_parts(eqn.attrs, used)
    carry_in = operand_parts(eqn.attrs, body.inputs)[2]
    local pruned
    while true      # a carry that a needed result depends on is needed itself
        pruned = select_outputs(body, vcat(used_carry, used_ys))
        live = used_inputs(with(pruned; inputs = carry_in)) .| used_carry
        live == used_carry && break
        used_carry = live
    end
    needed = used_inputs(pruned)
    consts, _, xs = operand_parts(eqn.attrs, needed)
    keep = vcat(consts, used_carry, xs)
    all(keep) && all(used_carry) && all(used_ys) && return [eqn]
    trimmed = copy_program(with(pruned; inputs = body.inputs[keep]))
    [
        Equation(op, eqn.inputs[keep], eqn.outputs[vcat(used_carry, used_ys)],
            scan_attrs(eqn, trimmed, count(consts), count(used_carry)), eqn.source)
    ]
end

# What the body gives twice is stacked once.
function distinct_results(op::Scan, eqn)
    m, results = eqn[:carry], eqn[:body].outputs
    first_ = [
        k <= m ? k : m + findfirst(a -> a === results[k], results[m+1:end])
        for k in eachindex(results)
    ]
    kept = sort!(unique(first_))
    length(kept) == length(results) && return eqn, eachindex(results)
    body = with(eqn[:body]; outputs = results[kept])
    (with(eqn; outputs = eqn.outputs[kept], attrs = scan_attrs(eqn, body, eqn[:consts], m)),
        [findfirst(==(k), kept) for k in first_])
end

function hoist_invariants!(::Scan, hoisted, e)
    e[:length] in (0, 1) && return e
    consts, carry, xs = operand_parts(e.attrs, e.inputs)
    body, values = without_invariants!(hoisted, e[:body], consts)
    isempty(values) && return e
    with(e; inputs = vcat(consts, values, carry, xs),
        attrs = scan_attrs(e.attrs, body, length(consts) + length(values), length(carry)))
end

# ---- what is the same in every trip

# A carry that no trip changes is a constant, and what a broadcast gives is broadcast inside, where
# a loop nest reads it from what is smaller, or from a number.
function loop_constants(::Scan, eqn, definition)
    eqn, copies = without_unchanged_carries(eqn.op, eqn)
    isempty(eqn.outputs) ? copies : vcat([broadcast_inside(eqn, definition)], copies)
end

function without_unchanged_carries(::Scan, eqn)
    body, k = eqn[:body], eqn[:carry]
    consts, carry, xs = operand_parts(eqn.attrs, eqn.inputs)
    own = operand_parts(eqn.attrs, body.inputs)
    same = Bool[v === a for (v, a) in zip(own[2], body.outputs)]
    any(same) || return eqn, Equation[]
    arranged(c, k, x) = vcat(c, k[same], k[.!same], x)
    changed = vcat(.!same, trues(length(body.outputs) - k))
    inner = with(body; inputs = arranged(own...), outputs = body.outputs[changed])
    copies = [
        Equation(primitive(:copy), Atom[a], Var[v], NO_ATTRIBUTES, eqn.source)
        for (a, v) in zip(carry[same], eqn.outputs[1:k][same])
    ]
    (with(eqn; inputs = arranged(consts, carry, xs), outputs = eqn.outputs[changed],
        attrs = scan_attrs(eqn, inner, length(consts) + count(same), k - count(same))), copies)
end

function broadcast_inside(eqn, definition)
    source = [smaller_source(definition, a) for a in eqn.inputs]
    all(isnothing, source) && return eqn
    consts, carry, xs =
        operand_parts(eqn.attrs, collect(zip(eqn.inputs, eqn[:body].inputs, source)))
    b = Builder(Equation[], eqn.source)
    fixed, sliced = Tuple{Atom,Var}[], Tuple{Atom,Var}[]
    for (a, v, e) in consts
        e === nothing ? push!(fixed, (a, v)) : broadcast_to!(fixed, b, v, e, e[:dims])
    end
    for (a, v, e) in xs
        if e === nothing || 0 in e[:dims] && shape(e.inputs[1])[1] != eqn[:length]
            push!(sliced, (a, v))
        elseif 0 in e[:dims]
            broadcast_to!(sliced, b, v, e, e[:dims][2:end] .- 1, 1)
        else
            broadcast_to!(fixed, b, v, e, e[:dims] .- 1)
        end
    end
    operands = vcat(fixed, Tuple{Atom,Var}[(a, v) for (a, v, _) in carry], sliced)
    body = eqn[:body]
    inner = with(body; inputs = Var[v for (_, v) in operands],
        equations = vcat(b.equations, body.equations))
    with(eqn; inputs = Atom[a for (a, _) in operands],
        attrs = scan_attrs(eqn, inner, length(fixed), length(carry)))
end

"The broadcast that gives an operand, from something with fewer elements, or nothing."
function smaller_source(definition, a)
    e = a isa Var ? get(definition, a, nothing) : nothing
    e !== nothing && e.op isa BroadcastInDim && ndims(aval(e.inputs[1])) < ndims(aval(a)) ? e :
    nothing
end

"""
Lets the body's `v` be what the broadcast `e` gives along `dims`, from an operand of the loop (whose
first `sliced` axes are those of the trips), or from a number."""
function broadcast_to!(operands, b, v::Var, e, dims, sliced = 0)
    source = e.inputs[1]
    type = TensorType(dtype(source), shape(source)[sliced+1:end])
    inner = source isa Literal ? source : type == aval(v) ? v : Var(type)
    inner isa Var && push!(operands, (source, inner))
    inner === v && return
    attrs = Attributes(:shape => shape(v), :dims => collect(Int, dims))
    push!(b.equations, Equation(e.op, Atom[inner], Var[v], attrs, b.source))
end

# ---- carried arrays in the order of their windows

function reorder_carries(::Scan, eqn)
    consts, carry, xs = operand_parts(eqn.attrs, eqn.inputs)
    body, outputs = eqn[:body], copy(eqn.outputs)
    own = operand_parts(eqn.attrs, body.inputs)[2]
    orders = IdDict{Var,Vector{Int}}()
    for (v, out) in zip(own, body.outputs)
        order = window_order(body, v, out, eqn[:length])
        order === nothing || (orders[v] = order)
    end
    isempty(orders) && return Equation[eqn]
    before, after = Builder(Equation[], eqn.source), Equation[]
    for (k, v) in enumerate(own)
        haskey(orders, v) || continue
        carry[k] = emit(before, :transpose, carry[k]; perm = orders[v])
        outputs[k] = Var(aval(carry[k]))
        back = Attributes(:perm => inverse_perm(orders[v]))
        push!(after, Equation(primitive(:transpose), Atom[outputs[k]], Var[eqn.outputs[k]], back,
            eqn.source))
    end
    loop = with(eqn; inputs = vcat(consts, carry, xs), outputs = outputs,
        attrs = scan_attrs(eqn, with_orders(body, orders), length(consts), length(carry)))
    vcat(before.equations, [loop], after)
end

# ---- arrays with their axes in other orders

function structures_of_arrays(::Scan, eqn, layout)
    carry = operand_parts(eqn.attrs, eqn[:body].inputs)[2]
    body, from, to = reordered(eqn[:body], layout, true, carry)
    of_stack(order) = vcat(0, order .+ 1)
    consts, carry_orders, slices = operand_parts(eqn.attrs, from)
    kept_orders, own = result_parts(eqn.attrs, to)
    e = body === eqn[:body] ? eqn :
        with(eqn; attrs = scan_attrs(eqn, body, length(consts), length(carry)))
    e, vcat(consts, carry_orders, map(of_stack, slices)), vcat(kept_orders, map(of_stack, own))
end

# ---- stacks that are transposed

stacked_records(::Scan, eqn) =
    [k for k in eqn[:carry]+1:length(eqn.outputs) if gives_records(eqn[:body], k)]

"Whether a result of a loop's body has the numbers of each item of a batch side by side."
function gives_records(body::Program, k)
    y = body.outputs[k]
    made = findfirst(e -> any(v -> v === y, e.outputs), body.equations)
    made === nothing && return false
    e = body.equations[made]
    e.op isa Scan && return findfirst(v -> v === y, e.outputs) in stacked_records(e.op, e)
    name(e.op) === :concatenate && e[:dim] == ndims(aval(y)) - 1 > 0 &&
        all(a -> shape(a)[end] == 1, e.inputs)
end

function transpose_stacks(::Scan, eqn, sources, results)
    body = eqn[:body]
    consts, carry, xs = operand_parts(eqn.attrs, collect(zip(eqn.inputs, body.inputs)))
    next_carry, own = result_parts(eqn.attrs, body.outputs)
    last_carry, stacks = result_parts(eqn.attrs, eqn.outputs)
    any(((a, _),) -> haskey(sources, a), xs) || any(v -> haskey(results, v), stacks) || return eqn
    before, after = Equation[], Equation[]
    for (k, (a, slice)) in enumerate(xs)
        e = get(sources, a, nothing)
        e === nothing && continue
        a = e.inputs[1]
        xs[k] = (a, Var(TensorType(dtype(a), shape(a)[2:end])))
        push!(before, slices_transposed(e, xs[k][2], slice))
    end
    for (k, v) in enumerate(stacks)
        e = get(results, v, nothing)
        e === nothing && continue
        stacks[k] = e.outputs[1]
        y = Var(TensorType(dtype(v), shape(stacks[k])[2:end]))
        push!(after, slices_transposed(e, own[k], y))
        own[k] = y
    end
    operands = vcat(consts, carry, xs)
    inner = with(body; inputs = Var[v for (_, v) in operands],
        equations = vcat(before, body.equations, after),
        outputs = vcat(next_carry, own))
    with(eqn; inputs = Atom[a for (a, _) in operands], outputs = vcat(last_carry, stacks),
        attrs = scan_attrs(eqn, inner, length(consts), length(carry)))
end

# ---- two loops that are one

# A stack that is only moved together, trip by trip, is no stack where it is read in the same order.
movesonly(::Scan, eqn) = all(
    e -> ismovement(e) || specialised(overwritten, e.op, Builder, Equation), eqn[:body].equations)

function one_loop(op::Scan, first_, second)
    second.op isa Scan && first_[:length] == second[:length] &&
        first_[:reverse] == second[:reverse] || return nothing
    stacks = IdDict{Atom,Int}(
        v => k for (k, v) in enumerate(first_.outputs) if k > first_[:carry]
    )
    consts, carry, xs = operand_parts(second.attrs, second.inputs)
    uses(atoms, vars) = any(a -> any(v -> v === a, vars), atoms)
    (uses(vcat(consts, carry), first_.outputs) || uses(xs, first_.outputs[1:first_[:carry]])) &&
        return nothing
    stays = Bool[!haskey(stacks, a) for a in xs]
    body = one_body(first_, second, xs, stays, stacks)
    given, parts = operand_parts(first_.attrs, first_.inputs), (consts, carry, xs[stays])
    results = [result_parts(e.attrs, e.outputs) for e in (first_, second)]
    Equation(op, reduce(vcat, map(vcat, given, parts)), reduce(vcat, map(vcat, results...)),
        scan_attrs(second, body, length(given[1]) + length(consts),
            first_[:carry] + second[:carry]), second.source)
end

"The body that runs both: of the slices `xs` of the second, those that do not stay the first gives."
function one_body(first_, second, xs, stays, stacks)
    f, s = [operand_parts(e.attrs, e[:body].inputs) for e in (first_, second)]
    ends = cumsum(map(length, [f[1], s[1], f[2], s[2], f[3]]))
    types = [map(aval, part) for part in (f[1], s[1], f[2], s[2], f[3], s[3][stays])]
    build(second[:body].name, reduce(vcat, types); source = second.source) do b, v
        part(k) = v[(k == 1 ? 1 : ends[k-1] + 1):ends[k]]
        made = inline!(b, first_[:body], vcat(part(1), part(3), part(5)))
        own = Iterators.Stateful(v[ends[5]+1:end])
        slices = Atom[stay ? popfirst!(own) : made[stacks[a]] for (stay, a) in zip(stays, xs)]
        results = inline!(b, second[:body], vcat(part(2), part(4), slices))
        reduce(vcat,
            map(vcat, result_parts(first_.attrs, made), result_parts(second.attrs, results)))
    end
end

# The code of a Program.

const Result = Union{Storage,Number}

"""
    emit_program!(g, program, inputs, targets) -> results

Writes the code of a Program whose inputs are stored so. Results of rank 0 come as registers or
numbers; the others are in `targets`. `after_stage()` is called after each stage of the plan."""
function emit_program!(g::Generator, p::Program, inputs, targets; plan_ = plan(p),
    after_stage = () -> nothing)
    s = Frame(g, plan_)
    for (v, x) in zip(p.inputs, inputs)
        s.storages[v] = x
    end
    for e in p.equations, (k, v) in enumerate(e.outputs)
        isvirtual(plan_.memory, plan_.producer, v) && (s.storages[v] = Virtual(e, k))
    end
    merge!(s.last, plan_.last)
    claim_targets!(s, p, plan_.producer, targets)
    note!(g.notes, plan_)
    for (k, stage) in enumerate(plan_.stages)
        check_cancelled()
        s.now[] = k
        note!(g.notes, stage)
        nested(() -> emit_stage!(s, stage), g.notes)
        release_dead!(s, k)
        after_stage()
    end
    results = Result[result!(s, a, m) for (a, m) in zip(p.outputs, targets)]
    foreach(part -> release!(g.arena, part), values(s.parts))
    results
end

"""
Results are computed where they are wanted, if they are results once and not inputs, and so is what
they overwrite."""
function claim_targets!(s::Frame, p::Program, producer, targets)
    for (a, m) in zip(p.outputs, targets)
        m isa Memory && a isa Var && !isscalar(a) || continue
        v = a
        while haskey(producer, v) && isalias(producer[v])
            v = producer[v].inputs[1]
        end
        haskey(producer, v) && !haskey(s.targets, v) && size_of(shape(v)) == size_of(shape(a)) ||
            continue
        if !isrowmajor(m)
            writes_views(s.plan, v) && aval(v) == m.type && (s.targets[v] = m)
            continue
        end
        while v !== nothing && haskey(producer, v) && !haskey(s.targets, v)
            s.targets[v] = Memory(m.pointer, aval(v), true)
            v = overwritten(s.plan, v)
        end
    end
end

"Whether the variable is computed by what can write a view of a part of an array."
writes_views(plan::Plan, v::Var) =
    (e = plan.producer[v]; writes_views(e.op, e, findfirst(u -> u === v, e.outputs))) ||
    any(stage -> stage isa NestStage &&
            any(root -> root[1] === v && !isreduction(root[2]), stage.roots), plan.stages)

function result!(s::Frame, a::Atom, target)
    isscalar(a) && return a isa Literal ? a.value : storage(s, a)
    storage(s, a).pointer === target.pointer || copy_elements!(s, target, a)
    target
end

"Frees the workspace of what this stage read last."
function release_dead!(s::Frame, stage)
    for (v, part) in collect(s.parts)
        get(s.last, v, 0) <= stage || continue
        release!(s.generator.arena, part)
        delete!(s.parts, v)
    end
end

function emit_stage!(s::Frame, stage::ScalarStage)
    e, n = stage.equation, Nest(s, Int[])
    values = [element(e.op, n, e, k, Affine[]) for k in eachindex(e.outputs)]
    write_point!(s.generator, with_branches(RowPart(0:0, n.steps, [], [])), Store[], Reduce[],
        Symbol[])
    for (v, x) in zip(e.outputs, values)
        s.storages[v] =
            Register(x isa Symbol ? x : local!(s.generator, dtype(v), stored(dtype(v), x)))
    end
end

function emit_stage!(s::Frame, stage::NestStage)
    roots, wide = IdDict{Var,Equation}(), Tuple{Var,Memory,Part}[]
    stores, reduces = Store[], Reduce[]
    for (v, e) in stage.roots
        isreduction(e) ? push!(reduces, reduction!(s, v, e, stage.domain, wide)) : (roots[v] = e)
    end
    for (v, e) in stage.roots
        haskey(roots, v) && push!(stores, whole_store(root_memory!(s, v, stage), v))
    end
    emit_nest!(s, stage.domain, stores, reduces; roots = roots)
    for (v, m, part) in wide
        narrow!(s, v, m)
        release!(s.generator.arena, part)
    end
    for (r, (v, e)) in zip(reduces, [x for x in stage.roots if isreduction(x[2])])
        isscalar(v) && define!(s, v, :($(stored)($(dtype(v)), $(r.total))))
    end
end

whole_store(m::Memory, v::Atom) = Store(v, m.pointer, m.type.dtype, Affine(m.strides, 0, []))
"The position in row-major memory of a point of a domain of these sizes."
memory_order(n::Vector{Int}) = Affine(row_strides(n), 0, [])

"A reduction's accumulators, set to the neutral element."
function reduction!(s::Frame, v::Var, e::Equation, domain, wide)
    g, A = s.generator, accumulator(dtype(v))
    reduced = Bool[k - 1 in e[:axes] for k in eachindex(domain)]
    if isscalar(v)
        total = local!(g, A, neutral(e.op, A))
        return Reduce(e.inputs[1], e.op, A, reduced, nothing, Affine(length(domain)), total)
    end
    kept, strides = findall(!, reduced), zeros(Int, length(domain))
    strides[kept] = row_strides(domain[kept])
    m = if A === dtype(v)
        memory!(s, v)
    else    # half precision accumulates in single
        part = allocate!(g.arena, bytes(TensorType(A, shape(v))))
        push!(wide, (v, Memory(pointer_at!(g, A, part), TensorType(A, shape(v)), true), part))
        last(wide)[2]
    end
    fill_memory!(s, m, neutral(e.op, A))
    Reduce(e.inputs[1], e.op, A, reduced, m.pointer, Affine(strides, 0, []), :none)
end

function fill_memory!(s::Frame, m::Memory, value)
    n = Int[size_of(m.type.shape)]
    emit_nest!(s, n, [Store(Literal(value), m.pointer, m.type.dtype, memory_order(n))], Reduce[])
end

"Memory of one type into memory of another."
function narrow!(s::Frame, v::Var, from::Memory)
    source = Var(from.type)
    s.storages[source] = from
    narrow = virtual!(s, :convert_element_type, source; dtype = dtype_name(dtype(v)))
    copy_elements!(s, memory!(s, v), narrow)
end

"A variable whose elements are computed where they are read."
function virtual!(s::Frame, op::Symbol, x::Atom...; attrs...)
    b = Builder()
    v = emit(b, op, x...; attrs...)
    s.storages[v] = Virtual(b.equations[1], 1)
    v
end

"Writes an atom's elements to memory, in row-major order."
function copy_elements!(s::Frame, to::Memory, a::Atom)
    emit_nest!(s, sizes(a), [whole_store(to, a)], Reduce[])
end

function emit_stage!(s::Frame, stage::OwnStage)
    e = stage.equation
    empty!(s.donatable)
    k = overwrites(e.op, e)
    k > 0 && donate!(s, e.inputs[k], e.inputs[1:end.!=k])
    emit_step!(e.op, s, e)
    # Rank-0 results that were written to memory are read from there.
    for v in e.outputs
        m = get(s.storages, v, nothing)
        isscalar(v) && m isa Memory && define!(s, v, :($(unsafe_load)($(m.pointer))))
    end
end

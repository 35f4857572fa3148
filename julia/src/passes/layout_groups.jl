# Which arrays a layout puts in another order (structures_of_arrays.jl): those that are computed
# from each other without a transposition go together.

"""
Arrays that are in the other order all or none. `gain`: elements of nests that stop at the ends of
rows; `loss`: elements of arrays that would have to be transposed."""
mutable struct LayoutGroup
    members::Vector{Var}
    gain::Int
    loss::Int
end
isworth(::RowsFirst, g::LayoutGroup) = g.gain > WORTH_TRANSPOSING * g.loss
isworth(::ItemsLast, g::LayoutGroup) = g.gain > 0 && g.loss == 0

"The groups found so far, by their members."
struct LayoutGroups{L<:Layout}
    layout::L
    groups::IdDict{Var,LayoutGroup}
end
group(s::LayoutGroups, v::Var) = get!(() -> LayoutGroup([v], 0, 0), s.groups, v)
order_wanted(s::LayoutGroups, a::Atom) =
    suits(s.layout, a) ? preferred(s.layout, a) : own_order(a)

"""
The orders that the arrays of a Program are put in. `forms`: equations in the place of those that
take arrays in their own order alone; `loops`: with the orders of their operands and results."""
function worth_reordering(layout, p::Program, forms, loops, open, carried)
    s = LayoutGroups(layout, IdDict{Var,LayoutGroup}())
    for e in p.equations
        check_cancelled()
        haskey(loops, e) ? weigh_loop!(s, loops[e]...) :
        foreach(x -> weigh!(s, x), get(forms, e, (e,)))
    end
    if open
        foreach(pair -> join!(s, filter(a -> suits(layout, a), collect(pair))),
            zip(carried, p.outputs))
    else
        foreach(a -> lose!(s, a), vcat(p.inputs, p.outputs))
    end
    IdDict{Var,Vector{Int}}(
        v => preferred(layout, v) for (v, g) in s.groups if isworth(layout, g)
    )
end
elements(a::Atom) = Int(size_of(shape(a)))
"Whether the elements of an array lie otherwise in the other order."
ismoved(s::LayoutGroups, a::Atom) =
    suits(s.layout, a) && !lie_alike(a, own_order(a), preferred(s.layout, a))
lose!(s::LayoutGroups, a::Atom) = ismoved(s, a) && (group(s, a).loss += elements(a))

"The products of a Program that may be sums of products of arrays which suit the layout."
elementwise_forms(::Layout, p::Program) = IdDict{Equation,Vector{Equation}}()
function elementwise_forms(layout::ItemsLast, p::Program)
    found = IdDict{Equation,Vector{Equation}}()
    for e in p.equations
        form = elementwise_form(e.op, e)
        form === nothing || !any(x -> suits(layout, x.outputs[1]), form) || (found[e] = form)
    end
    found
end

weigh_loop!(s::LayoutGroups, e::Equation, from, to) =
    for (a, order) in zip(vcat(e.inputs, e.outputs), vcat(from, to))
        order == own_order(a) && lose!(s, a)
    end

"Counts what an equation gains or loses by arrays in the other order, which go together there."
function weigh!(s::LayoutGroups, e::Equation)
    atoms = vcat(e.inputs, e.outputs)
    rows = Atom[a for a in atoms if suits(s.layout, a)]
    isempty(rows) && return
    istransposition(e) && return join!(s, rows)
    moved = axes_moved(a -> order_wanted(s, a), e)
    moved === nothing && return foreach(a -> lose!(s, a), rows)
    transposed = Int[
        elements(a)
        for (a, o) in zip(e.inputs, moved[2]) if !lie_alike(a, o, order_wanted(s, a))
    ]
    if isempty(transposed)
        joined = join!(s, rows)
        isuniform(s.layout, e, atoms) ||
            (joined.gain += reduce(max, (elements(a) for a in rows if ismoved(s, a)); init = 0))
    else
        foreach(a -> group(s, a).loss += sum(transposed), rows)
    end
end

"Whether the elements of an array lie alike in two orders of its axes, some of which are of size 1."
lie_alike(a::Atom, order, other) = long_axes(a, order) == long_axes(a, other)
long_axes(a::Atom, order) = [k for k in order if shape(a)[k+1] != 1]

"Whether a nest can pass all arrays of an equation as one row: nothing is between their rows."
isuniform(layout::RowsFirst, e::Equation, atoms) =
    all(a -> holds_one(a) || suits(layout, a), atoms) && !(name(e.op) in (:pad, :concatenate)) &&
    length(unique(shape(a)[end] for a in atoms if !holds_one(a))) == 1
isuniform(::ItemsLast, e::Equation, atoms) =
    length(unique(shape(a) for a in atoms if !holds_one(a))) == 1
"Whether an array has one element, or is a number."
holds_one(a::Atom) = isempty(shape(a)) || size_of(shape(a)) == 1

"The group that these arrays have from now on."
function join!(s::LayoutGroups, vars)
    isempty(vars) && return nothing
    foldl((group(s, v) for v in vars)) do g, h
        g === h && return g
        length(g.members) < length(h.members) && ((g, h) = (h, g))
        append!(g.members, h.members)
        g.gain, g.loss = g.gain + h.gain, g.loss + h.loss
        foreach(v -> s.groups[v] = g, h.members)
        g
    end
end

# A loop nest: what is computed at each point of a domain. Its code is made in loops.jl.

"""
The body of a loop nest over `domain`, while it is being built for the part
`inner` of the last axis.

`breaks` collects the places along the last axis where a condition (such as the edge of a padded
array) changes: between two of them it is known. `edges` collects the conditions on the other axes,
as positions and the sizes that they stay below; where `interior`, these are taken to hold. `roots`
are the variables in memory that this very nest computes: at its own point it has their values at
hand.
"""
struct Nest
    frame::Frame
    domain::Vector{Int}
    inner::UnitRange{Int}
    steps::Vector{Tuple{Symbol,Step,DataType}}
    known::Dict{Any,Any}
    breaks::Vector{Int}
    edges::Vector{Tuple{Affine,Int}}
    interior::Bool
    roots::IdDict{Var,Equation}
end
Nest(frame::Frame, domain, inner = 0:last_size(domain)-1, roots = IdDict{Var,Equation}();
    interior = false) =
    Nest(frame, domain, inner, [], Dict{Any,Any}(), Int[], [], interior, roots)
last_size(domain) = isempty(domain) ? 1 : domain[end]
rank(n::Nest) = length(n.domain)

identity_index(n::Nest) = Affine[loop_index(rank(n), k) for k in 1:rank(n)]
zero_index(n::Nest) = Affine(rank(n))

"The local variable with that value, computed once."
function step!(n::Nest, s::Step, T::DataType)
    get!(n.known, (s, T)) do
        v = fresh_symbol!(n.frame.generator, T)
        push!(n.steps, (v, s, T))
        v
    end
end
load!(n::Nest, pointer::Symbol, at::Affine, T) = step!(n, Load(pointer, at), T)
"f(operands...) as a T; operands are local variables and numbers."
apply!(n::Nest, @nospecialize(f), T::DataType, operands::Vector{Any}) =
    step!(n, Apply(f, operands), T)
position!(n::Nest, at::Affine) = step!(n, Position(at), Int)

"The value of an atom's element."
element(n::Nest, l::Literal, index) = l.value
function element(n::Nest, v::Var, index)
    isempty(aval(v).shape) && (index = Affine[])
    element(storage(n.frame, v), n, v, index)
end
element(s::Register, n::Nest, v, index) = s.symbol
function element(s::Memory, n::Nest, v, index)
    haskey(n.roots, v) && index == identity_index(n) && return computed(n, v, n.roots[v], index)
    load!(n, s.pointer, linear(index, s.strides, rank(n)), dtype(v))
end
element(s::Virtual, n::Nest, v, index) = computed(n, v, s.equation, index)

function computed(n::Nest, v::Var, eqn::Equation, index)
    get!(n.known, (objectid(v), index)) do
        element(eqn.op, n, eqn, findfirst(o -> o === v, eqn.outputs), index)
    end
end

"The element of operand `a` for an elementwise primitive."
pointwise(n::Nest, a::Atom, index) = element(n, a, isempty(shape(a)) ? Affine[] : index)

"An element of an integer atom as a position: a number where it is known."
index_value(n::Nest, a::Literal, index) = zero_index(n) + Int(a.value)
index_value(n::Nest, a::Var, index) =
    Affine(rank(n), apply!(n, as_position, Int, Any[element(n, a, index)]))
as_position(i::Integer) = i % Int
as_position(i::UInt64) = ifelse(i > typemax(Int) % UInt64, typemax(Int), i % Int)

"A position moved into low … high."
function clamped(n::Nest, a::Affine, low::Int, high::Int)
    if isstatic(a)
        from, to = bounds(a, n)
        low <= from && to <= high && return a
        from == to && return zero_index(n) + clamp(from, low, high)
    end
    Affine(rank(n), apply!(n, clamp_position, Int, Any[position_symbol(n, a), low, high]))
end
clamp_position(i::Int, low::Int, high::Int) = ifelse(i < low, low, ifelse(i > high, high, i))
position_symbol(n::Nest, a::Affine) =
    length(a.dynamic) == 1 && isinvariant(a) && a.offset == 0 && last(a.dynamic[1]) == 1 ?
    first(a.dynamic[1]) : position!(n, a)

"Lowest and highest value of a static position in the part of the domain being built."
function bounds(a::Affine, n::Nest)
    isempty(n.domain) && return a.offset, a.offset
    shifted = Affine(a.coefs, a.offset + a.coefs[end] * first(n.inner), a.dynamic)
    bounds(shifted, vcat(n.domain[1:end-1], [length(n.inner)]))
end

"""
    inside(nest, index, sizes) -> (condition, index)

Whether the index lies in an array of these sizes: `true`, `false`, or a local variable; with an
index that always does. Where the answer changes along the last axis at known places, these are
noted in `breaks`.
"""
function inside(n::Nest, index::Vector{Affine}, sizes)
    condition, safe = true, copy(index)
    for (k, (a, size)) in enumerate(zip(index, sizes))
        if isstatic(a)
            from, to = bounds(a, n)
            0 <= from && to < size && continue
            (to < 0 || from >= size) && return false, safe
            note_breaks!(n, a, size)
            a.coefs[end] == 0 && !((a, size) in n.edges) && push!(n.edges, (a, size))
            a.coefs[end] == 0 && n.interior && continue
        end
        at = position_symbol(n, a)
        here = apply!(n, within_bounds, Bool, Any[at, size])
        condition = condition === true ? here : apply!(n, &, Bool, Any[condition, here])
        safe[k] = Affine(rank(n), apply!(n, clamp_position, Int, Any[at, 0, size - 1]))
    end
    condition, safe
end
within_bounds(i::Int, size::Int) = (0 <= i) & (i < size)

"""
Where along the last axis a position that depends on that axis alone enters or
leaves 0 … size - 1."""
function note_breaks!(n::Nest, a::Affine, size)
    c = a.coefs[end]
    (c == 0 || any(!=(0), a.coefs[1:end-1])) && return
    crossings =
        c > 0 ? (cld(-a.offset, c), cld(size - a.offset, c)) :
        (fld(a.offset - size, -c) + 1, fld(a.offset, -c) + 1)
    append!(n.breaks, (x for x in crossings if first(n.inner) < x <= last(n.inner)))
end

"condition ? a : b, both computed."
choose!(n::Nest, condition::Bool, a, b, T) = condition ? a : b
choose!(n::Nest, condition, a, b, T) = apply!(n, ifelse, T, Any[condition, a, b])

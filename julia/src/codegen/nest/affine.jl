# Positions in memory and along axes as functions of a nest's loop variables.

"""
offset + Σ coefs[k] · iₖ + Σ c · d: the iₖ are a loop nest's variables, the d are local variables
(Int) computed at run time, each with its coefficient in `dynamic`.
"""
struct Affine
    coefs::Vector{Int}
    offset::Int
    dynamic::Vector{Pair{Symbol,Int}}
end
Affine(rank::Int, offset::Int = 0) = Affine(zeros(Int, rank), offset, [])
"The loop variable k of a nest of that rank."
loop_index(rank, k) = (a = Affine(rank); a.coefs[k] = 1; a)
Affine(rank::Int, variable::Symbol) = Affine(zeros(Int, rank), 0, [variable => 1])

Base.:(==)(a::Affine, b::Affine) =
    a.coefs == b.coefs && a.offset == b.offset && a.dynamic == b.dynamic
Base.hash(a::Affine, h::UInt) = hash(a.coefs, hash(a.offset, hash(a.dynamic, h)))
Base.:*(a::Affine, c::Int) =
    Affine(a.coefs .* c, a.offset * c, [d => k * c for (d, k) in a.dynamic])
Base.:+(a::Affine, c::Int) = Affine(a.coefs, a.offset + c, a.dynamic)
Base.:+(a::Affine, b::Affine) =
    Affine(a.coefs .+ b.coefs, a.offset + b.offset, add_terms(a.dynamic, b.dynamic))

function add_terms(a, b)
    isempty(b) && return a
    terms = copy(a)
    for (d, c) in b
        k = findfirst(t -> first(t) === d, terms)
        k === nothing ? push!(terms, d => c) : (terms[k] = d => last(terms[k]) + c)
    end
    filter!(t -> last(t) != 0, terms)
end

isstatic(a::Affine) = isempty(a.dynamic)
"Whether it is the same at every point of the nest but for run-time variables."
isinvariant(a::Affine) = all(==(0), a.coefs)

"Position in row-major memory of the element at these indices."
linear(index::Vector{Affine}, strides, rank) =
    foldl(+, (i * s for (i, s) in zip(index, strides)); init = Affine(rank))

"Its lowest and highest value over a domain, where no run-time variable enters."
function bounds(a::Affine, domain)
    reach = [c * (n - 1) for (c, n) in zip(a.coefs, domain)]
    a.offset + sum(Int[min(0, r) for r in reach]), a.offset + sum(Int[max(0, r) for r in reach])
end

"As an expression of these loop variables."
function expression(a::Affine, variables)
    terms = Any[scaled(v, c) for (v, c) in zip(variables, a.coefs) if c != 0]
    append!(terms, scaled(d, c) for (d, c) in a.dynamic)
    a.offset == 0 && !isempty(terms) || push!(terms, a.offset)
    foldl(plus, terms)
end
plus(x, y) = :($(+)($x, $y))
plus(x::Int, y::Int) = x + y
scaled(x, c) = c == 1 ? x : :($(*)($x, $c))
scaled(x::Int, c::Int) = x * c

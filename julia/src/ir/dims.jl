# Dimensions: integers, or polynomials with integer coefficients over opaque names
# (`b`, `floordiv(b, 2)`).

"A symbolic dimension in normal form: monomial (sorted names, repeated for powers) => coefficient."
struct DimExpr
    terms::Dict{Vector{String},Int}
    text::String     # as it was read, so that reading and printing is the identity
end

const Dim = Union{Int,DimExpr}
const Shape = Vector{Dim}

Base.:(==)(a::DimExpr, b::DimExpr) = a.terms == b.terms
Base.hash(d::DimExpr, h::UInt) = hash(d.terms, h)

terms_of(n::Int) = n == 0 ? Dict{Vector{String},Int}() : Dict(String[] => n)
terms_of(d::DimExpr) = d.terms

"A Dim from terms: an Int when no name is left."
function dim_of(terms::Dict{Vector{String},Int})
    terms = filter(t -> t.second != 0, terms)
    isempty(terms) && return 0
    length(terms) == 1 && haskey(terms, String[]) && return terms[String[]]
    DimExpr(terms, dim_text(terms))
end

function dim_text(terms)
    order = sort!(collect(terms); by = t -> (-length(t.first), t.first))
    io = IOBuffer()
    for (i, (names, c)) in enumerate(order)
        i > 1 ? print(io, c < 0 ? " - " : " + ") : (c < 0 && print(io, "-"))
        factors = [k == 1 ? n : "$n^$k" for (n, k) in runs(names)]
        (abs(c) != 1 || isempty(factors)) && pushfirst!(factors, string(abs(c)))
        join(io, factors, "*")
    end
    String(take!(io))
end
runs(names) = [(n, count(==(n), names)) for n in unique(names)]

function dim_sum(a::Dim, b::Dim, scale::Int)
    terms = copy(terms_of(a))
    for (names, c) in terms_of(b)
        terms[names] = get(terms, names, 0) + scale * c
    end
    dim_of(terms)
end
const AnyDim = Union{Integer,DimExpr}
Base.:+(a::DimExpr, b::AnyDim) = dim_sum(a, b isa DimExpr ? b : Int(b), 1)
Base.:+(a::Integer, b::DimExpr) = dim_sum(Int(a), b, 1)
Base.:-(a::DimExpr, b::AnyDim) = dim_sum(a, b isa DimExpr ? b : Int(b), -1)
Base.:-(a::Integer, b::DimExpr) = dim_sum(Int(a), b, -1)
Base.:-(a::DimExpr) = dim_sum(0, a, -1)
function Base.:*(a::DimExpr, b::AnyDim)
    terms = Dict{Vector{String},Int}()
    for (m, c) in terms_of(a), (n, d) in terms_of(b isa DimExpr ? b : Int(b))
        key = sort!(vcat(m, n))
        terms[key] = get(terms, key, 0) + c * d
    end
    dim_of(terms)
end
Base.:*(a::Integer, b::DimExpr) = b * a
Base.:^(a::DimExpr, n::Integer) = foldl(*, fill(a, n); init = 1)

"Floor division; exact when every coefficient divides, an opaque `floordiv` otherwise."
function Base.fld(a::DimExpr, k::Integer)
    all(c % k == 0 for c in values(a.terms)) &&
        return dim_of(Dict(m => c ÷ Int(k) for (m, c) in a.terms))
    dim_of(Dict([opaque("floordiv", [a, Int(k)])] => 1))
end
opaque(f, arguments) =
    string(f, "(",
        join((a isa DimExpr ? dim_text(a.terms) : string(a) for a in arguments), ", "), ")")

Base.isequal(a::DimExpr, b::DimExpr) = a == b
Base.show(io::IO, d::DimExpr) = print(io, "<", d.text, ">")
"The number of elements of an array of that shape."
size_of(shape)::Dim = foldl(*, shape; init = 1)
isstatic(shape) = all(d -> d isa Int, shape)

"""
Reads the text of a symbolic dimension, `2*b + floordiv(a, 3)`; throws an ArgumentError
on anything else."""
function parse_dim(text::AbstractString)
    tokens = [m.match for m in eachmatch(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[-+*^(),]|\S", text)]
    dim, rest = dim_sum_at(tokens, 1)
    rest > length(tokens) || throw(ArgumentError("unexpected $(tokens[rest]) in dimension $text"))
    dim isa DimExpr ? DimExpr(dim.terms, String(text)) : dim
end

token_at(tokens, i) = i <= length(tokens) ? tokens[i] : ""

function dim_sum_at(tokens, i)
    negative = token_at(tokens, i) == "-"
    total, i = dim_product_at(tokens, negative ? i + 1 : i)
    negative && (total = 0 - total)
    while token_at(tokens, i) in ("+", "-")
        sign = tokens[i] == "+" ? 1 : -1
        term, i = dim_product_at(tokens, i + 1)
        total = total + sign * term
    end
    total, i
end

function dim_product_at(tokens, i)
    total, i = dim_factor_at(tokens, i)
    while token_at(tokens, i) == "*"
        factor, i = dim_factor_at(tokens, i + 1)
        total = total * factor
    end
    total, i
end

function dim_factor_at(tokens, i)
    base, i = dim_atom_at(tokens, i)
    token_at(tokens, i) == "^" || return base, i
    power = tryparse(Int, token_at(tokens, i + 1))
    power === nothing && throw(ArgumentError("a dimension's exponent must be an integer"))
    base^power, i + 2
end

function dim_atom_at(tokens, i)
    token = token_at(tokens, i)
    if token == "("
        inner, i = dim_sum_at(tokens, i + 1)
        token_at(tokens, i) == ")" || throw(ArgumentError("expected ) in a dimension"))
        return inner, i + 1
    end
    number = tryparse(Int, token)
    number === nothing || return number, i + 1
    occursin(r"^[A-Za-z_]", token) || throw(ArgumentError("expected a dimension, got \"$token\""))
    token_at(tokens, i + 1) == "(" || return dim_of(Dict([String(token)] => 1)), i + 1
    arguments, i = Dim[], i + 1
    while true
        argument, i = dim_sum_at(tokens, i + 1)
        push!(arguments, argument)
        token_at(tokens, i) == "," || break
    end
    token_at(tokens, i) == ")" || throw(ArgumentError("expected ) in a dimension"))
    dim_of(Dict([opaque(token, arguments)] => 1)), i + 1
end

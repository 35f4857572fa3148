# Dimensions: integers, or polynomials with integer coefficients over opaque names
# (`b`, `floordiv(b, 2)`).

# A text of a few characters could ask for polynomials without end: (a+b+c+d+e)^60 has 600 000
# monomials. These bounds are those of pybridge/ir/dims.py.
const MAX_DIM_TEXT = 1000       # characters, of a dimension and of a name in it
const MAX_DIM_NESTING = 20
const MAX_DIM_DEGREE = 32
const MAX_DIM_PRODUCT = 1000    # monomials times monomials

dim_too_large(what) = throw(ProgramTypeError("a symbolic dimension $what"))

"Monomials (sorted names, repeated for powers) => coefficients."
const Terms = Dict{Vector{String},Int}

"A symbolic dimension in normal form."
struct DimExpr
    terms::Terms
    text::String     # as it was read, so that reading and printing is the identity
end

const Dim = Union{Int,DimExpr}
const Shape = Vector{Dim}

Base.:(==)(a::DimExpr, b::DimExpr) = a.terms == b.terms
Base.hash(d::DimExpr, h::UInt) = hash(d.terms, h)

terms_of(n::Int) = n == 0 ? Terms() : Terms(String[] => n)
terms_of(d::DimExpr) = d.terms
isconstant(terms::Terms) = isempty(terms) || length(terms) == 1 && haskey(terms, String[])
constant_of(terms::Terms) = get(terms, String[], 0)

"A Dim from terms: an Int when no name is left."
dim_of(terms::Terms) =
    isconstant(terms) ? constant_of(terms) : DimExpr(terms, dim_text(terms))

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

function add_term!(terms::Terms, names, coefficient)
    value = checked(+, get(terms, names, 0), coefficient)
    value == 0 ? delete!(terms, names) : (terms[names] = value)
    terms
end
function checked(f, a::Int, b::Int)
    value, overflows = f === (+) ? Base.add_with_overflow(a, b) : Base.mul_with_overflow(a, b)
    overflows ? dim_too_large("has a coefficient that does not fit 64 bits") : value
end

function sum_of(a::Terms, b::Terms, scale = 1)
    terms = copy(a)
    for (names, c) in b
        add_term!(terms, names, checked(*, scale, c))
    end
    terms
end
function product_of(a::Terms, b::Terms)
    length(a) * length(b) <= MAX_DIM_PRODUCT || dim_too_large("has too many terms")
    terms = Terms()
    for (m, c) in a, (n, d) in b
        length(m) + length(n) <= MAX_DIM_DEGREE ||
            dim_too_large("has a degree of more than $MAX_DIM_DEGREE")
        add_term!(terms, sort!(vcat(m, n)), checked(*, c, d))
    end
    terms
end
function power_of(a::Terms, n::Int)
    isconstant(a) && constant_of(a) in (-1, 0, 1) && n > 0 &&
        return isodd(n) ? a : product_of(a, a)
    result = terms_of(1)
    for _ in 1:n        # ends long before n is large: at the degree, or with a coefficient
        result = product_of(result, a)
    end
    result
end

const AnyDim = Union{Integer,DimExpr}
terms_of(n::Integer) = terms_of(Int(n))
Base.:+(a::DimExpr, b::AnyDim) = dim_of(sum_of(a.terms, terms_of(b)))
Base.:+(a::Integer, b::DimExpr) = b + a
Base.:-(a::DimExpr, b::AnyDim) = dim_of(sum_of(a.terms, terms_of(b), -1))
Base.:-(a::Integer, b::DimExpr) = dim_of(sum_of(terms_of(a), b.terms, -1))
Base.:-(a::DimExpr) = 0 - a
Base.:*(a::DimExpr, b::AnyDim) = dim_of(product_of(a.terms, terms_of(b)))
Base.:*(a::Integer, b::DimExpr) = b * a
Base.:^(a::DimExpr, n::Integer) = dim_of(power_of(a.terms, Int(n)))

"Floor division; exact when every coefficient divides, an opaque `floordiv` otherwise."
function Base.fld(a::DimExpr, k::Integer)
    all(c % k == 0 for c in values(a.terms)) &&
        return dim_of(Dict(m => c ÷ Int(k) for (m, c) in a.terms))
    dim_of(opaque("floordiv", [a.terms, terms_of(k)]))
end
function opaque(f, arguments::Vector{Terms})
    name = string(f, "(", join(map(dim_text, arguments), ", "), ")")
    length(name) <= MAX_DIM_TEXT ||
        dim_too_large("has a name of more than $MAX_DIM_TEXT characters")
    Terms([name] => 1)
end

Base.isequal(a::DimExpr, b::DimExpr) = a == b
Base.show(io::IO, d::DimExpr) = print(io, "<", d.text, ">")
"The number of elements of an array of that shape."
size_of(shape)::Dim = foldl(*, shape; init = 1)
isstatic(shape) = all(d -> d isa Int, shape)

"""
Reads the text of a symbolic dimension, `2*b + floordiv(a, 3)`; throws an ArgumentError
on anything else, and a ProgramTypeError beyond the bounds."""
function parse_dim(text::AbstractString)
    length(text) <= MAX_DIM_TEXT ||
        dim_too_large("has more than $MAX_DIM_TEXT characters")
    tokens = [m.match for m in eachmatch(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^ \t\r\n]", text)]
    terms, rest = dim_sum_at(tokens, 1, 0)
    rest > length(tokens) || throw(ArgumentError("unexpected $(tokens[rest]) in dimension $text"))
    isconstant(terms) ? constant_of(terms) : DimExpr(terms, String(text))
end

token_at(tokens, i) = i <= length(tokens) ? tokens[i] : ""

function dim_sum_at(tokens, i, depth)
    depth <= MAX_DIM_NESTING ||
        dim_too_large("is nested more than $MAX_DIM_NESTING deep")
    negative = token_at(tokens, i) == "-"
    total, i = dim_product_at(tokens, negative ? i + 1 : i, depth)
    negative && (total = sum_of(Terms(), total, -1))
    while token_at(tokens, i) in ("+", "-")
        sign = tokens[i] == "+" ? 1 : -1
        term, i = dim_product_at(tokens, i + 1, depth)
        total = sum_of(total, term, sign)
    end
    total, i
end

function dim_product_at(tokens, i, depth)
    total, i = dim_factor_at(tokens, i, depth)
    while token_at(tokens, i) == "*"
        factor, i = dim_factor_at(tokens, i + 1, depth)
        total = product_of(total, factor)
    end
    total, i
end

function dim_factor_at(tokens, i, depth)
    base, i = dim_atom_at(tokens, i, depth)
    token_at(tokens, i) == "^" || return base, i
    power = tryparse(Int, token_at(tokens, i + 1))
    power === nothing && throw(ArgumentError("a dimension's exponent must be an integer"))
    power_of(base, power), i + 2
end

function dim_atom_at(tokens, i, depth)
    token = token_at(tokens, i)
    if token == "("
        inner, i = dim_sum_at(tokens, i + 1, depth + 1)
        token_at(tokens, i) == ")" || throw(ArgumentError("expected ) in a dimension"))
        return inner, i + 1
    end
    number = tryparse(Int, token)
    number === nothing || return terms_of(number), i + 1
    occursin(r"^[A-Za-z_]", token) || throw(ArgumentError("expected a dimension, got \"$token\""))
    token_at(tokens, i + 1) == "(" || return Terms([String(token)] => 1), i + 1
    arguments, i = Terms[], i + 1
    while true
        argument, i = dim_sum_at(tokens, i + 1, depth + 1)
        push!(arguments, argument)
        token_at(tokens, i) == "," || break
    end
    token_at(tokens, i) == ")" || throw(ArgumentError("expected ) in a dimension"))
    opaque(token, arguments), i + 1
end

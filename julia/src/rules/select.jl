# Choices between values.

selected(which::Bool, off, on) = ifelse(which, on, off)
# Part by part, of which LLVM makes vectors.
selected(which::Bool, off::T, on::T) where {T<:Complex} =
    T(ifelse(which, real(on), real(off)), ifelse(which, imag(on), imag(off)))
selected(which::Integer, last) = last
selected(which::Integer, first, rest...) =
    ifelse(which <= 0, first, selected(which - one(which), rest...))

selects(W, cases...) =
    !isempty(cases) && all(==(cases[1]), cases) &&
    (W === Bool ? length(cases) <= 2 : W <: Integer)

# Linear in the cases jointly: an absent tangent or a case that is not linear counts as zero.
function select_tangent(ẋ, y, which, cases...)
    present = ẋ[findfirst(t -> t !== nothing, ẋ)]
    apply(:select_n, which, (t === nothing ? literal(present, 0) : t for t in ẋ[2:end])...)
end
function select_transpose(ȳ, which, cases...)
    only_where(k) =
        apply(:select_n, which, (j == k ? ȳ : literal(ȳ, 0) for j in eachindex(cases))...)
    (nothing, (islinear(case) ? only_where(k) : nothing for (k, case) in enumerate(cases))...)
end
@elementwise(:select_n, nothing, selected; accepts = selects, result = (W, cases...) -> cases[1],
    tangents = select_tangent, transpose = select_transpose)

# The bounds get the tangent where they hold strictly; where x equals a bound
# nobody does, as in JAX.
masked(t, conditions...) = where_(reduce(&, conditions), t, 0)
@elementwise(:clamp, 3, (low, x, high) -> smaller(larger(x, low), high); domain = isanything,
    tangents = ((t, y, low, x, high) -> masked(t, compare(:gt, low, x), compare(:lt, low, high)),
        (t, y, low, x, high) -> masked(t, compare(:gt, x, low), compare(:lt, x, high)),
        (t, y, low, x, high) -> masked(t, compare(:lt, high, x))))

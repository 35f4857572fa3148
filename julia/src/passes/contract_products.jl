# a b + c in one instruction with one rounding, as XLA has it, where that is all that becomes of the
# product: fewer instructions, and half the latency in chains of them.
#
# A product that is read elsewhere too is rounded there, and so is rounded in sums as well: else a
# number less itself, as of straight-through estimators, and the rounding error of a product
# (Dekker 1971) would be another number. The difference of products of the same factors stays zero;
# of equal products of different factors it is as large as the rounding of one.

"a b + c of real numbers, rounded once where the processor can; only code generation knows it."
struct MultiplyAdd <: Primitive end
name(::MultiplyAdd) = :multiply_add
iselementwise(::MultiplyAdd) = true
cost(::MultiplyAdd, eqn) = 1
isbinary(T) = T === Float32 || T === Float64

"""
    contract_products(program) -> Program

The same Program, in which sums and differences take products that nothing else reads as
`MultiplyAdd`s, and quotients by literals are products. Values change by rounding."""
function contract_products(p::Program)
    products, b = IdDict{Atom,Vector{Atom}}(), Builder()
    elsewhere, equations = use_counts(p), map(by_literal, p.equations)
    for e in equations
        isproduct(e) && (products[e.outputs[1]] = factors(e))
        is_sum(e) && foreach(a -> a isa Var && (elsewhere[a] -= 1), e.inputs)
    end
    for e in equations
        b.source = e.source
        made = is_sum(e) ? contracted(b, e, products, elsewhere) : nothing
        push!(b.equations, made === nothing ? map_bodies(contract_products, e) : made)
    end
    dce(with(p; equations = b.equations))
end

"A quotient by a literal as the product with its reciprocal, as XLA has it."
function by_literal(e::Equation)
    name(e.op) === :div && e.inputs[2] isa Literal && isbinary(dtype(e.outputs[1])) || return e
    r = inv(e.inputs[2].value)
    isordinary(r) ? with(e; op = primitive(:mul), inputs = Atom[e.inputs[1], Literal(r)]) : e
end

is_sum(e::Equation) = name(e.op) in (:add, :sub) && isbinary(dtype(e.outputs[1]))
isproduct(e::Equation) = factors(e) !== nothing && isbinary(dtype(e.outputs[1]))
"What the equation multiplies, or nothing."
factors(e::Equation) =
    name(e.op) === :mul ? e.inputs :
    name(e.op) === :square || name(e.op) === :integer_pow && e[:y] == 2 ?
    Atom[e.inputs[1], e.inputs[1]] : nothing

"""
The sum with one of its operands contracted, or nothing. `products`: the factors of those that are
products; `elsewhere`: how often a variable is used but in sums."""
function contracted(b::Builder, e::Equation, products, elsewhere)
    isequal((get(products, a, [a]) for a in e.inputs)...) && return nothing
    k = findlast(a -> haskey(products, a) && elsewhere[a] == 0, e.inputs)
    k === nothing && return nothing
    x, y = products[e.inputs[k]]
    other = e.inputs[3-k]
    if name(e.op) === :sub
        k == 1 ? (other = negative(b, other)) :
        x isa Literal ? (x = negative(b, x)) : (y = negative(b, y))
    end
    Equation(MultiplyAdd(), Atom[x, y, other], e.outputs, Attributes(), e.source)
end
negative(b::Builder, a::Var) = emit(b, :neg, a)
negative(b::Builder, a::Literal) = Literal(-a.value)

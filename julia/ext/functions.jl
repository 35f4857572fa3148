# Derivatives of Julia functions: `apply!` of a derivative differentiates `apply!` of what it is the
# derivative of.
#
# All operands and results are arrays, so that each is `Duplicated` or `Const`, in forward and in
# reverse mode; scalars are arrays of no dimension (Moses & Churavy, NeurIPS 2020, on activities;
# the Enzyme.jl manual, "Higher-order AD", on forward over reverse).

using JaxprAD: isinexact
using JaxprAD.Functions: Functions, Pullback, Pushforward, each, fresh, pick
import JaxprAD.Functions: apply!, differentiate!

differentiate!(d, results, operands::Vararg{AbstractArray,N}) where {N} =
    apply!(d, results, operands...)

"For each place up to `n` the next of `shadows` if the place is among `active`, else nothing."
@generated function spread(shadows::Tuple, ::Val{active}, ::Val{n}) where {active,n}
    Expr(:tuple,
        ((k = findfirst(==(i), active); k === nothing ? nothing : :(shadows[$k])) for i in 1:n)...)
end
annotated(x, ::Nothing) = Const(x)
annotated(x, shadow) = Duplicated(x, shadow)

count_of(t::Tuple) = Val(length(t))
"The first operands, which are those of the function, and the rest."
@generated function split_at(x::Tuple, ::Val{n}) where {n}
    :(($(Expr(:tuple, (:(x[$i]) for i in 1:n)...)),
        $(Expr(:tuple, (:(x[$i]) for i in n+1:fieldcount(x))...))))
end

"Places of the inexact results, whose shadows come from outside; those of others are scratch."
@generated function inexact_places(::O) where {O<:Tuple}
    places = Tuple(i for (i, s) in enumerate(O.parameters) if isinexact(s.parameters[1]))
    :(Val($places))
end
or_fresh(s, ::Nothing) = fresh(s)
or_fresh(s, x) = x
shadows_of(of, given::Tuple) =
    each(or_fresh, of.outputs, spread(given, inexact_places(of.outputs), count_of(of.outputs)))

function apply!(p::Pushforward{C,A}, results::Tuple,
    operands::Vararg{AbstractArray,N}) where {C,A,N}
    x, tangents = split_at(operands, count_of(p.of.inputs))
    ẋ = spread(tangents, Val(A), count_of(x))
    y = each(fresh, p.of.outputs)
    autodiff(Forward, Const(apply!), Const, Const(p.of), Duplicated(y, shadows_of(p.of, results)),
        each(annotated, x, ẋ)...)
    nothing
end

function apply!(p::Pullback{C,A}, results::Tuple, operands::Vararg{AbstractArray,N}) where {C,A,N}
    x, cotangents = split_at(operands, count_of(p.of.inputs))
    y = each(fresh, p.of.outputs)
    ȳ = shadows_of(p.of, each(unshared, cotangents))
    x̄ = spread(results, Val(A), count_of(x))
    autodiff(Reverse, Const(apply!), Const, Const(p.of), Duplicated(y, ȳ),
        each(annotated, x, x̄)...)
    each(conjugate!, results)
    nothing
end

# Enzyme pairs complex numbers as two reals each, JAX without conjugation. And it uses up the
# cotangents. (Not `copy`, whose forward derivative Enzyme warns about.)
unshared(ȳ::AbstractArray) = map(conj, ȳ)
conjugate!(x̄::AbstractArray) = nothing
conjugate!(x̄::AbstractArray{<:Complex}) = (x̄ .= conj.(x̄); nothing)

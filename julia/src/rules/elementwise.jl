# The family of elementwise primitives: one row of data each, see unary.jl and binary.jl.

"""
An elementwise primitive.

- `kernel`: the function on numbers.
- `result`: operand dtypes -> result dtype.
- `tangents`: one function an operand, `(t, y, x...) -> ∂y/∂xᵢ · t` on Traced values, linear in the tangent `t`; `nothing`
  when the tangent is always zero.
- `transpose`: `(ȳ, x...) -> (x̄...)` for primitives that can be linear, `nothing` otherwise; linear operands are `Undefined`.
"""
struct Elementwise <: Primitive
    name::Symbol
    kernel::Function
    result::Function
    tangents::Union{Nothing,Tuple{Vararg{Function}}}
    transpose::Union{Nothing,Function}
end

same_dtype(types...) = first(types)
bool_dtype(types...) = Bool

elementwise(name, kernel; result = same_dtype, tangents = nothing, transpose = nothing) =
    register!(Elementwise(name, kernel, result, tangents, transpose))

name(op::Elementwise) = op.name
attributes(::Elementwise) = ()
haszerotangent(op::Elementwise) = op.tangents === nothing

function infer(op::Elementwise, types, attrs)
    all(t -> t.dtype === types[1].dtype, types) ||
        infer_error(op, "operands have different dtypes: $(join(map(type_text, types), ", "))")
    [TensorType(op.result((t.dtype for t in types)...), common_shape(op, types))]
end

"The one shape of elementwise operands; rank-0 operands go with any."
function common_shape(op, types)
    shapes = unique(t.shape for t in types if !isempty(t.shape))
    length(shapes) > 1 && infer_error(op, "operands have different shapes: $(join(map(type_text, types), ", "))")
    isempty(shapes) ? Dim[] : first(shapes)
end

function evaluate(op::Elementwise, x, attrs, types)
    T = types[1].dtype
    [asarray(broadcast((v...) -> convert_result(T, op.kernel(v...)), x...))]
end
asarray(x::AbstractArray) = collect(x)
asarray(x::Number) = fill(x)
convert_result(::Type{T}, x) where {T} = convert(T, x)

function jvp(op::Elementwise, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    op.tangents === nothing && return y, MaybeAtom[nothing]
    traced = Traced[Traced(b, v) for v in (y[1], x...)]
    ẏ = nothing
    for (i, tangent) in enumerate(op.tangents)
        ẋ[i] === nothing && continue
        ẏ = add_maybe(b, ẏ, tangent(Traced(b, ẋ[i]), traced...).atom)
    end
    y, MaybeAtom[ẏ]
end

function transpose(op::Elementwise, b, eqn, ȳ, x)
    op.transpose === nothing && return invoke(transpose, Tuple{Primitive,Any,Any,Any,Any}, op, b, eqn, ȳ, x)
    operands = (v isa Undefined ? v : Traced(b, v) for v in x)
    MaybeAtom[x̄ isa Traced ? x̄.atom : x̄ for x̄ in op.transpose(Traced(b, ȳ[1]), operands...)]
end
islinear(::Traced) = false

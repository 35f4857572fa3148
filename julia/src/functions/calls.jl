# A call of the user's function, on memory of XLA's layout.

"""
    Call

`f` with its arguments in a template of slots, and its results likewise. `inputs` and `outputs` are
the leaves' types. `narrows` allows results of a wider dtype than promised (JAX without 64-bit types
shortens what it infers).
"""
struct Call{F,A,R,M,I,O,InPlace}
    f::F
    arguments::A
    results::R
    layout::M
    inputs::I
    outputs::O
    narrows::Bool
end
Call(f, arguments, results, layout, inputs, outputs; inplace = false, narrows = false) =
    Call{
        typeof(f),
        typeof(arguments),
        typeof(results),
        typeof(layout),
        typeof(inputs),
        typeof(outputs),
        inplace
    }(
        f, arguments, results, layout, inputs, outputs, narrows)

"""
    apply!(what, results::Tuple, operands...)

Computes arrays from arrays, all as they lie in memory, and returns nothing: the form in which calls
and their derivatives are differentiated. `results` are zero at first.
"""
function apply! end

function apply!(c::Call{F,A,R,M,I,O,false}, results::Tuple,
    operands::Vararg{AbstractArray,N}) where {F,A,R,M,I,O,N}
    arguments = filled(c.arguments, each(m -> shown(c.layout, m), operands))
    store!(c, c.results, c.f(arguments...), results)
    nothing
end
function apply!(c::Call{F,A,R,M,I,O,true}, results::Tuple,
    operands::Vararg{AbstractArray,N}) where {F,A,R,M,I,O,N}
    arguments = filled(c.arguments, each(m -> shown(c.layout, m), operands))
    outs = each(m -> arranged(c.layout, m), results)
    c.f(filled(c.results, outs), arguments...)
    each((m, w) -> write_back!(c.layout, m, w), results, outs)
    nothing
end

"Runs on XLA's own memory."
function execute!(c::Call, results::Tuple, operands::Tuple)
    each(m -> fill!(m, zero(eltype(m))), results)
    given = each(m -> operand(c.layout, m), operands)
    apply!(c, results, given...)
    each(check_unwritten, given)
    nothing
end

# Results

function store!(c, ::Slot{I}, y::Number, results) where {I}
    m = results[I]
    ndims(m) == 0 && fits(c, eltype(m), typeof(y)) || mismatch(c, Val(I), y)
    m[] = y
    nothing
end
function store!(c, ::Slot{I}, y::AbstractArray, results) where {I}
    m = results[I]
    fits(c, eltype(m), eltype(y)) && axes(y) == reverse(axes(m)) || mismatch(c, Val(I), y)
    fill_from!(m, y)
    nothing
end
store!(c, ::Slot{I}, y, results) where {I} = mismatch(c, Val(I), y)
store!(c, ::Nothing, y, results) = nothing
function store!(c, t::Tuple, y::Tuple, results)
    length(t) == length(y) || mismatch(t, y)
    each((s, v) -> store!(c, s, v, results), t, y)
    nothing
end
function store!(c, t::NamedTuple{K}, y::NamedTuple, results) where {K}
    issubset(K, keys(y)) && length(K) == length(y) || mismatch(t, y)
    store!(c, Tuple(t), each(k -> getfield(y, k), K), results)
end
store!(c, t::Union{Tuple,NamedTuple}, y, results) = mismatch(t, y)

fits(c, ::Type{T}, ::Type{T}) where {T} = true
fits(c, T::Type, S::Type) =
    c.narrows && known_dtype(S) && isinexact(S) == isinexact(T) && (S <: Complex) == (T <: Complex)

@noinline mismatch(c, ::Val{I}, y) where {I} = throw(
    ResultMismatch(
        "the function was to give $(c.outputs[I]) but returned $(describe_result(y))")
)
@noinline mismatch(t, y) = throw(
    ResultMismatch(
        "the function was to give $(structure(t)) but returned $(describe_result(y))")
)
describe_result(y) = a_value(y)
describe_result(y::Number) = "the $(typeof(y)) $y"
structure(t::Tuple) = "a tuple of $(length(t))"
structure(t::NamedTuple) = "a named tuple ($(join(keys(t), ", ")))"

# Programs as JAX has them without its 64-bit types: the same operations in 32 bits.

const NARROWED = IdDict{DataType,DataType}(Float64 => Float32, ComplexF64 => ComplexF32,
    Int64 => Int32, UInt64 => UInt32)
narrow_dtype(T::DataType) = get(NARROWED, T, T)

"""
    in_32_bits(x)

A Program, an array, a tree of types or part of one with values of 32 bits where there were 64. The
least and the largest integer stay that; any other that 32 bits do not hold is refused."""
function in_32_bits(p::Program)
    places = IdDict{Var,Var}()
    renamed(v::Var) = get!(() -> Var(in_32_bits(aval(v))), places, v)
    renamed(l::Literal) = Literal(narrow_number(l.value, ""))
    inputs = Var[renamed(v) for v in p.inputs]
    equations = map(p.equations) do e
        operands = Atom[a isa Literal ? Literal(narrow_number(a.value, e.source)) : renamed(a)
                        for a in e.inputs]
        with(e; inputs = operands, outputs = Var[renamed(v) for v in e.outputs],
            attrs = attributes_in_32_bits(e))
    end
    typecheck(with(p; inputs = inputs, equations = equations,
        outputs = Atom[renamed(a) for a in p.outputs]))
end
in_32_bits(t::TensorType) = TensorType(narrow_dtype(t.dtype), t.shape)
in_32_bits(s::Symbol) = haskey(DTYPE_OF_NAME, s) ? dtype_name(narrow_dtype(dtype_named(s))) : s
in_32_bits(x) = x
in_32_bits(x::AbstractArray{T}) where {T<:Number} =
    narrow_dtype(T) === T ? x : map(v -> narrow_number(v, ""), x)
in_32_bits(x::Vector{Program}) = Program[in_32_bits(p) for p in x]
in_32_bits(s::Functions.Spec{T}) where {T} = Functions.Spec(narrow_dtype(T), reverse(s.size))
in_32_bits(t::Tuple) = map(in_32_bits, t)
in_32_bits(t::NamedTuple{K}) where {K} = NamedTuple{K}(map(in_32_bits, Tuple(t)))

"Of a constant the elements are numbers of its type; of all else only names of types change."
function attributes_in_32_bits(e::Equation)
    isempty(e.attrs) && return e.attrs
    attrs = Attributes(key => value isa Vector{<:Number} || value isa Vector{Any} ? value :
                              in_32_bits(value) for (key, value) in e.attrs)
    T = e.op isa Constant ? aval(e.outputs[1]).dtype : Nothing
    T <: Integer && foreach(v -> narrow_number(convert(T, v), e.source), attrs[:value])
    attrs
end

narrow_number(x::Number, source) = convert(narrow_dtype(typeof(x)), x)
function narrow_number(x::T, source) where {T<:Union{Int64,UInt64}}
    S = narrow_dtype(T)
    x == typemax(T) && return typemax(S)
    x == typemin(T) && return typemin(S)
    typemin(S) <= x <= typemax(S) || throw(
        TracingFailed("the integer $x needs 64 bits: switch on JAX's 64-bit types, " *
                      "jax.config.update('jax_enable_x64', True)", source, nothing))
    S(x)
end

# Primitives without operands.

@primitive Iota iota(dtype, shape, dim)
@primitive Constant constant(value, ref)
@primitive DimSize dim_size(dim, dtype)

ischeap(::Union{Iota,Constant,DimSize}) = true
haszerotangent(::Union{Iota,Constant,DimSize}) = true
isfree(::Constant) = true

function infer(op::Iota, types, attrs)
    T, type = (dtype_named(attrs[:dtype]),
        TensorType(dtype_named(attrs[:dtype]), Shape(attrs[:shape])))
    check_axis(op, type, attrs[:dim])
    T === Bool && infer_error(op, "has no bool form")
    [type]
end
function evaluate(::Iota, x, attrs, types)
    y = uninitialized(types[1])
    for (k, part) in enumerate(eachslice(threefold(y, attrs[:dim]); dims = 2))
        fill!(part, wrapped(eltype(y), k - 1))
    end
    [y]
end
wrapped(T::DataType, n) = T <: Integer ? n % T : T(n)

infer(op::DimSize, types, attrs) = [TensorType(dtype_named(attrs[:dtype]))]
evaluate(::DimSize, x, attrs, types) =
    attrs[:dim] isa Int ? [fill(wrapped(types[1].dtype, attrs[:dim]))] :
    throw(ProgramTypeError("cannot evaluate the symbolic " *
                           "dimension $(attrs[:dim])"))

# A constant's type stands only in its binder; reading keeps it as the attribute `type`,
# which is not printed.
required_attributes(::Constant) = ()
declared_attributes(::Constant, attrs, types) = merge(attrs, Attributes(:type => types[1]))

"""
The arrays behind constants whose `ref` is a hash alone, in Julia's order of dimensions;
the caller puts them here before a Program is evaluated."""
const CONSTANTS = Dict{String,Array}()

function infer(op::Constant, types, attrs)
    type = attrs[:type]
    haskey(attrs, :value) != haskey(attrs, :ref) ||
        infer_error(op, "needs a value or a ref, not both")
    isstatic(type.shape) || infer_error(op, "cannot have the symbolic shape of $(type_text(type))")
    if haskey(attrs, :value)
        numbers = size_of(type.shape) * (iscomplex(type.dtype) ? 2 : 1)
        attrs[:value] isa AbstractVector && length(attrs[:value]) == numbers ||
            infer_error(op, "$(type_text(type)) needs $numbers numbers")
    end
    [type]
end

function evaluate(::Constant, x, attrs, types)
    # what the caller gets of it may be written to
    haskey(attrs, :value) || return [copy(stored_constant(attrs[:ref], types[1]))]
    T, numbers = types[1].dtype, attrs[:value]
    values = iscomplex(T) ? T.(numbers[1:2:end], numbers[2:2:end]) : T.(numbers)
    [reshape(convert(Vector{T}, values), julia_size(types[1]))]
end

function stored_constant(ref::Symbol, type)
    haskey(CONSTANTS, String(ref)) ||
        throw(ProgramTypeError("the data of the constant $ref are missing"))
    stored_constant(StoredArray(ref, CONSTANTS[String(ref)]), type)
end
function stored_constant(s::StoredArray, type)
    ref, stored = s.ref, s.data
    eltype(stored) === type.dtype && size(stored) == julia_size(type) ||
        throw(ProgramTypeError("the data of the constant $ref are not a $(type_text(type))"))
    stored
end

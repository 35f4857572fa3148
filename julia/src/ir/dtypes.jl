# The closed set of element types, as Julia types and as the Program text's names.

const DTYPES = [
    :bool => Bool, :i8 => Int8, :i16 => Int16, :i32 => Int32, :i64 => Int64,
    :u8 => UInt8, :u16 => UInt16, :u32 => UInt32, :u64 => UInt64,
    :f16 => Float16, :bf16 => BFloat16, :f32 => Float32, :f64 => Float64, :c64 => ComplexF32,
    :c128 => ComplexF64,
]
const DTYPE_OF_NAME = Dict{Symbol,DataType}(DTYPES)
const NAME_OF_DTYPE = IdDict{DataType,Symbol}(type => name for (name, type) in DTYPES)

dtype_name(type::DataType) = NAME_OF_DTYPE[type]
function dtype_named(name::Symbol)
    haskey(DTYPE_OF_NAME, name) || throw(ProgramTypeError("unknown dtype $name"))
    DTYPE_OF_NAME[name]
end

"""
Whether values of this type have tangents: floats and complex numbers do, integers
and bools do not."""
isinexact(type::DataType) = type <: AbstractFloat || type <: Complex
iscomplex(type::DataType) = type <: Complex
real_dtype(type::DataType) = type <: Complex ? type.parameters[1] : type
complex_dtype(type::DataType) = type <: Complex ? type : Complex{type}

# Where values are while a kernel runs.

"""
Where a variable's value is while a kernel runs.

- `Register`: rank 0, in a local variable.
- `Memory`: row-major at the pointer that a local variable (`Ptr{T}`) holds; `owned` when the kernel
  may overwrite it after its last use.
- `Virtual`: nowhere; each element is computed where it is read.
"""
abstract type Storage end
struct Register <: Storage
    symbol::Symbol
end
struct Memory <: Storage
    pointer::Symbol
    type::TensorType
    owned::Bool
end
struct Virtual <: Storage
    equation::Equation
    slot::Int
end

# Where values are while a kernel runs.

"""
Where a variable's value is while a kernel runs.

- `Register`: rank 0, in a local variable.
- `Memory`: at the pointer that a local variable (`Ptr{T}`) holds; `owned` when the kernel may
  overwrite it after its last use. It is row-major, but for views of parts of arrays
  (kernels/item_blocks.jl).
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
    strides::Vector{Int}                # in elements
end
Memory(pointer, type, owned) = Memory(pointer, type, owned, row_strides(Int.(type.shape)))
isrowmajor(m::Memory) = m.strides == row_strides(Int.(m.type.shape))
"The same memory, not to be overwritten."
unowned(m::Memory) = Memory(m.pointer, m.type, false, m.strides)
unowned(r::Register) = r
struct Virtual <: Storage
    equation::Equation
    slot::Int
end

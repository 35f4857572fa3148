# Programs: typed, single-assignment equations with closed nested Programs (docs/program.md).

# What no machine could hold is refused where it is read or made, so that no product of sizes
# overflows; axes of size 0 count as 1. These bounds are those of pybridge/ir/types.py.
const MAX_BYTES = Int64(2)^47       # the address space of a process
const MAX_RANK = 64                 # of numpy's arrays

"""
An abstract value: element type and shape (row-major, as in JAX). Throws a `ProgramTypeError` beyond
the bounds."""
struct TensorType
    dtype::DataType
    shape::Shape
    TensorType(dtype::DataType, shape::Shape) = new(dtype, checked_shape(dtype, shape))
end
function checked_shape(dtype, shape)
    length(shape) <= MAX_RANK ||
        throw(ProgramTypeError("an array of $(length(shape)) axes has more than $MAX_RANK"))
    room = MAX_BYTES ÷ sizeof(dtype)
    for d in shape
        d isa Int || continue
        d >= 0 || throw(ProgramTypeError("$d is not a dimension"))
        room ÷= max(d, 1)
        room > 0 ||
            throw(ProgramTypeError("$(type_text(dtype, shape)) has more than 2^47 bytes"))
    end
    shape
end
TensorType(dtype::DataType, shape::AbstractVector) = TensorType(dtype, Shape(shape))
TensorType(dtype::DataType) = TensorType(dtype, Dim[])
Base.:(==)(a::TensorType, b::TensorType) =
    a.dtype === b.dtype && (a.shape === b.shape || a.shape == b.shape)
Base.hash(t::TensorType, h::UInt) = hash(t.shape, hash(t.dtype, h))
Base.ndims(t::TensorType) = length(t.shape)
Base.show(io::IO, t::TensorType) = print(io, type_text(t))
type_text(t::TensorType) = type_text(t.dtype, t.shape)
type_text(dtype, shape) = string(dtype_name(dtype), "[", join(shape, ","), "]")

"""
A variable. Variables are told apart by identity; they get their numbers when a
Program is printed."""
mutable struct Var
    type::TensorType
end

"A rank-0 constant; together with arrays it stands for an array filled with it."
struct Literal
    value::Number
end

const Atom = Union{Var,Literal}

"The abstract value of an atom."
aval(v::Var) = v.type
aval(l::Literal) = TensorType(typeof(l.value))
dtype(a::Atom) = aval(a).dtype
shape(a::Atom) = aval(a).shape
"The axes of an array in the order in which it has them, and a permutation's inverse."
own_order(a::Atom) = collect(0:ndims(aval(a))-1)
inverse_perm(perm) = sortperm(perm) .- 1
"Where those axes are in an order."
moved_axes(order, axes) = Int[findfirst(==(k), order) - 1 for k in axes]

# Literals are equal when their bits are: NaN equals NaN, and 0.0 differs from -0.0.
Base.:(==)(a::Literal, b::Literal) =
    isequal(a.value, b.value) && typeof(a.value) === typeof(b.value)
Base.hash(l::Literal, h::UInt) = hash(typeof(l.value), hash(l.value, h))

"A primitive operation; each has one place in `rules/` that holds all that is known of it."
abstract type Primitive end

const Attributes = Dict{Symbol,Any}

struct Equation
    op::Primitive
    inputs::Vector{Atom}
    outputs::Vector{Var}
    attrs::Attributes
    source::String      # the user's source position, or ""
end

struct Program
    name::String
    inputs::Vector{Var}
    equations::Vector{Equation}
    outputs::Vector{Atom}
end

Base.getindex(e::Equation, attribute::Symbol) = e.attrs[attribute]
hasbodies(e::Equation) = any(v -> v isa Union{Program,Vector{Program}}, values(e.attrs))
bodies(e::Equation) =
    hasbodies(e) ? Program[p for v in values(e.attrs) for p in bodies(v)] : NO_BODIES
bodies(p::Program) = (p,)
bodies(ps::Vector{Program}) = ps
bodies(value) = ()
const NO_BODIES = Program[]

"The number of equations, those of nested Programs included."
count_equations(p::Program)::Int =
    mapreduce(e -> 1 + mapreduce(count_equations, +, bodies(e); init = 0), +, p.equations; init = 0)

"The same equation with other operands, results or attributes."
with(e::Equation; op = e.op, inputs = e.inputs, outputs = e.outputs, attrs = e.attrs) =
    Equation(op, inputs, outputs, attrs, e.source)
"The same Program with other inputs, equations or outputs."
with(p::Program; name = p.name, inputs = p.inputs, equations = p.equations, outputs = p.outputs) =
    Program(name, inputs, equations, outputs)

const VarSet = Base.IdSet{Var}

isscalar(a::Atom) = isempty(shape(a))
"The sizes of an array without symbolic dimensions."
sizes(a::Atom) = Int[Int(d) for d in shape(a)]
"The distances in row-major memory of neighbours along each axis."
row_strides(sizes) = Int[prod(sizes[k+1:end]) for k in eachindex(sizes)]
bytes(type::TensorType) = Int(size_of(type.shape)) * sizeof(type.dtype)

isvalue(a, number) = a isa Literal && a.value == number
iszero_literal(a) = a isa Literal && iszero(a.value)
isone_literal(a) = a isa Literal && isone(a.value)

"How often each variable is an operand or a result."
function use_counts(p::Program)
    uses = IdDict{Var,Int}()
    count_use(a) = a isa Var && (uses[a] = get(uses, a, 0) + 1)
    for e in p.equations
        foreach(count_use, e.inputs)
    end
    foreach(count_use, p.outputs)
    uses
end

"The equation with its nested Programs transformed."
function map_bodies(f, e::Equation)
    hasbodies(e) || return e
    with(e; attrs = Attributes(k => map_bodies(f, v) for (k, v) in e.attrs))
end
map_bodies(f, p::Program) = f(p)
map_bodies(f, ps::Vector{Program}) = Program[f(p) for p in ps]
map_bodies(f, @nospecialize(value)) = value

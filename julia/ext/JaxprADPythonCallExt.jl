"""
`JaxFunction`: functions of JAX as functions of Julia, by pybridge/functions/jax_calls.py. Arrays go
there as addresses, and come back so; neither way is a copy where none is needed."""
module JaxprADPythonCallExt

using JaxprAD: ArrayLeaf, ArrayLike, Container, DictionaryKeys, ForeignFunction, Functions, JaxprAD,
    NumberLeaf, StaticValue, as_array, dtype_name, flatten, istraced, leaf_type, load, refuse_lanes,
    run_program, tangent_leaves, with_tangents
using PythonCall: Py, pyconvert, pydict, pyimport, pylist, pytuple

const Leaves = Iterators.Stateful

"A function of JAX, with what was compiled of it for each structure and types of arguments."
struct JaxFunction <: ForeignFunction
    f::Py
    calls::Dict{Any,Any}
    lock::ReentrantLock
end
JaxprAD.brought(::Val{:JaxFunction}, package, f) =
    JaxFunction(Py(f), Dict{Any,Any}(), ReentrantLock())
Base.show(io::IO, f::JaxFunction) = print(io, "JaxFunction(", f.f, ")")
Base.show(io::IO, ::MIME"text/plain", f::JaxFunction) = show(io, f)

"""
The function at arguments of one structure and types: what Python has of it, its result with the
places of leaves, and the types of these; the Program once it was asked for."""
mutable struct Call
    const python::Py
    const result::Any
    const types::Tuple
    program::Any
end

function call_for(f::JaxFunction, leaves, structure)
    types = map(leaf_type, leaves)
    key = (structure, Tuple((t.dtype, Tuple(t.shape)) for t in types))
    lock(() -> get!(() -> made_call(f.f, types, structure), f.calls, key), f.lock)::Call
end
function made_call(f, types, structure)
    described = pylist(pytuple((string(dtype_name(t.dtype)), pytuple(t.shape))) for t in types)
    calls = pyimport("pybridge.functions.jax_calls")
    arguments = python_value(structure, Leaves(eachindex(types)), calls.Slot)
    python = calls.JaxCall(f, arguments, described)
    tree = Functions.read_tree(pyconvert(String, python.result))
    Call(python, Functions.slotted(tree)..., nothing)
end

"The arguments in Python, with the places of the leaves."
python_value(::Union{NumberLeaf,ArrayLeaf}, places, slot) = slot(popfirst!(places) - 1)
python_value(s::StaticValue, places, slot) = known_value(s.value)
function python_value(s::Container, places, slot)
    # in order: the iterator has a state
    parts = Any[]
    foreach(part -> push!(parts, python_value(part, places, slot)), s.parts)
    python_group(s.type, parts)
end
python_group(::Type{Tuple}, parts) = pytuple(parts)
python_group(::ArrayLike, parts) = pylist(parts)
python_group(::Type{<:NamedTuple{names}}, parts) where {names} = named(names, parts)
python_group(d::DictionaryKeys, parts) =
    pydict(known_value(k) => v for (k, v) in zip(d.keys, parts))
python_group(T, parts) = named(fieldnames(T), parts)
named(names, parts) = pydict(String(n) => v for (n, v) in zip(names, parts))
known_value(x) = Py(x)
known_value(x::Symbol) = Py(String(x))
known_value(::Nothing) = Py(nothing)
known_value(x::Tuple) = pytuple(map(known_value, x))
known_value(x::NamedTuple{names}) where {names} = named(names, map(known_value, Tuple(x)))

# ---- values

# Not inferred: Enzyme, which has rules for this call, would check all of PythonCall's code.
(f::JaxFunction)(x...) = Base.invokelatest(called, f, x)
function called(f::JaxFunction, x)
    leaves, structure = flatten(x)
    call = call_for(f, leaves, structure)
    any(istraced, leaves) && return inlined(call, leaves)
    arrays = map(as_array, leaves)
    GC.@preserve arrays result(call, call.python.value(addresses(arrays)))
end

"In a trace the function is its Program."
function inlined(call::Call, leaves)
    foreach(v -> refuse_lanes(v, "a function of JAX"), leaves)
    Functions.filled(call.result, Tuple(run_program(program!(call), leaves)))
end
program!(call::Call) =
    call.program === nothing ? (call.program = saved_program(call.python)) : call.program
saved_program(python) =
    mktempdir() do folder
        path = joinpath(folder, "f.pybridge")
        python.save(path)
        load(path).program
    end

addresses(arrays) = pylist(Int(pointer(x)) for x in arrays)
result(call::Call, lent) =
    Functions.filled(call.result, Tuple(map(from_python, call.types, pyconvert(Vector{Py}, lent))))

"A number, or an array over the memory of numpy's, which lives as long."
function from_python(::Functions.Spec{T,0}, lent) where {T}
    address, owner = lent
    GC.@preserve owner unsafe_load(Ptr{T}(pyconvert(Int, address)))
end
function from_python(s::Functions.Spec{T}, lent) where {T}
    prod(s.size) == 0 && return Array{T}(undef, s.size)
    address, owner = lent
    x = unsafe_wrap(Array, Ptr{T}(pyconvert(Int, address)), s.size)
    lock(() -> OWNERS[UInt(pointer(x))] = owner, OWNERS_LOCK)
    finalizer(release!, x)
end

"""
What keeps the memory of arrays, by its address. That a finalizer refers to it would not keep it: it
has a finalizer itself."""
const OWNERS, OWNERS_LOCK = Dict{UInt,Py}(), ReentrantLock()
function release!(x)
    # A finalizer may not wait: it comes back.
    trylock(OWNERS_LOCK) || return finalizer(release!, x)
    try
        delete!(OWNERS, UInt(pointer(x)))
    finally
        unlock(OWNERS_LOCK)
    end
    nothing
end

# ---- derivatives

function JaxprAD.jvp(f::JaxFunction, x::Tuple, ẋ::Tuple)
    leaves, structure = flatten(x)
    given = tangent_leaves(x, ẋ)
    any(istraced, leaves) || any(istraced, given) &&
        return invoke(JaxprAD.jvp, Tuple{Any,Tuple,Tuple}, f, x, ẋ)
    call = call_for(f, leaves, structure)
    arrays, tangents = map(as_array, leaves), map(as_array, given)
    GC.@preserve arrays tangents begin
        y, ẏ = call.python.jvp(addresses(arrays), addresses(tangents))
        with_result_tangents(call, y, ẏ)
    end
end

function JaxprAD.vjp(f::JaxFunction, x...)
    leaves, structure = flatten(x)
    any(istraced, leaves) && return invoke(JaxprAD.vjp, Tuple{Any,Vararg{Any}}, f, x...)
    call = call_for(f, leaves, structure)
    arrays = map(as_array, leaves)
    y, pull = GC.@preserve arrays call.python.vjp(addresses(arrays))
    value = result(call, y)
    types = [Functions.Spec(t.dtype, t.shape) for t in map(leaf_type, leaves)]
    value, function (ȳ)
        given = tangent_leaves(value, ȳ)
        any(istraced, given) &&
            return invoke(JaxprAD.vjp, Tuple{Any,Vararg{Any}}, f, x...)[2](ȳ)
        cotangents = map(as_array, given)
        x̄ = GC.@preserve cotangents pull(addresses(cotangents))
        floats = filter(Functions.isinexact_spec, types)
        with_tangents(structure, x, map(from_python, floats, pyconvert(Vector{Py}, x̄)))
    end
end

function with_result_tangents(call, y, ẏ)
    value = result(call, y)
    floats = filter(Functions.isinexact_spec, collect(call.types))
    tangents = map(from_python, floats, pyconvert(Vector{Py}, ẏ))
    value, with_tangents(flatten(value)[2], value, tangents)
end

end

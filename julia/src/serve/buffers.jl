# Programs evaluated on the caller's memory, and constants that lie there.

function answer(::Val{:evaluate}, body, arguments)
    p = checked(body)
    pointers(k) = [parse(UInt, a) for a in split(arguments[k], ','; keepempty = false) if a != "-"]
    x = Any[buffer(aval(v), address) for (v, address) in zip(p.inputs, pointers(1))]
    y = with_constants(() -> evaluate(p, x), p, addresses_of(arguments[3]))
    for (a, value, address) in zip(p.outputs, y, pointers(2))
        copyto!(buffer(aval(a), address), value)
    end
    ""
end

addresses_of(text) =
    Dict(Pair(split(pair, '=')...) for pair in split(text, ','; keepempty = false) if pair != "-")

"Calls `f` while the constants that `p` refers to are to be found in the store."
function with_constants(f, p::Program, addresses)
    try
        store_constants!(p, addresses)
        f()
    finally
        empty!(CONSTANTS)
    end
end
function store_constants!(p::Program, addresses)
    for e in p.equations
        foreach(q -> store_constants!(q, addresses), bodies(e))
        e.op isa Constant && haskey(e.attrs, :ref) || continue
        ref = String(e[:ref])
        haskey(addresses, ref) &&
            (CONSTANTS[ref] = buffer(aval(e.outputs[1]), parse(UInt, addresses[ref])))
    end
end

"A row-major buffer as a Julia array with reversed dimensions; the caller keeps it alive."
function buffer(type::TensorType, address::UInt)
    isstatic(type.shape) ||
        throw(ProgramTypeError("cannot evaluate a Program with symbolic dimensions"))
    size = Tuple(reverse(Int.(type.shape)))
    prod(size) == 0 && return Array{type.dtype}(undef, size)
    unsafe_wrap(Array, Ptr{type.dtype}(address), size)
end

# bitcast_convert_type: of the same width number by number, else the same memory under another name.

same_width(eqn) = sizeof(dtype(eqn.inputs[1])) == sizeof(dtype(eqn.outputs[1]))
isfusable(::BitcastConvertType, eqn) = same_width(eqn)
ispointwise(::BitcastConvertType) = true

struct Reinterpret{T} end
(::Reinterpret{T})(x) where {T} = x isa T ? x : reinterpret(T, x)
function element(::BitcastConvertType, n::Nest, eqn, slot, index)
    T = dtype(eqn.outputs[1])
    apply!(n, Reinterpret{T}(), T, Any[pointwise(n, eqn.inputs[1], index)])
end

function emit_step!(::BitcastConvertType, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    if isscalar(x)
        m = memory!(s, v)
        return emit_code!(s.generator,
            :($(unsafe_store!)($(cast_pointer!(s, m, dtype(x))), $(scalar(s, x)))))
    end
    m = memory_of(s, x)
    pointer = cast_pointer!(s, m, dtype(v))
    isscalar(v) && return define!(s, v, :($(unsafe_load)($pointer)))
    share_memory!(s, v, x)
    s.storages[v] = Memory(pointer, aval(v), m.owned)
end
cast_pointer!(s::Frame, m::Memory, T) =
    local!(s.generator, Ptr{T}, :(convert($(Ptr{T}), $(m.pointer))))

# Error messages composed without Julia's heap, in a buffer of C's.

"The end of a text in a buffer, and the end of the buffer; what does not fit is left out."
struct Text
    next::Ptr{UInt8}
    last::Ptr{UInt8}
end

put(t::Text, byte::UInt8) =
    t.next < t.last ? (unsafe_store!(t.next, byte); Text(t.next + 1, t.last)) : t
put(t::Text, s::String) = GC.@preserve s put(t, pointer(s), sizeof(s))
function put(t::Text, bytes::Ptr{UInt8}, count::Int)
    for i in 1:count
        t = put(t, unsafe_load(bytes, i))
    end
    t
end
# `÷` would throw for a divisor 0, which is none of these.
divided(n::UInt64, by::UInt64) = Core.Intrinsics.udiv_int(n, by)
function put(t::Text, n::UInt64)
    unit, ten = UInt64(1), UInt64(10)
    while divided(n, unit) >= ten
        unit *= ten
    end
    while unit > 0
        digit = divided(n, unit) - ten * divided(divided(n, unit), ten)
        t = put(t, UInt8('0') + digit % UInt8)
        unit = divided(unit, ten)
    end
    t
end
put(t::Text, n::Int64) =
    n < 0 ? put(put(t, UInt8('-')), reinterpret(UInt64, -n)) : put(t, reinterpret(UInt64, n))

"The names of XLA's element types in columns of one width, by number."
const DTYPE_WIDTH = 5
const DTYPE_NAMES =
    let names = Dict(number => string(dtype_name(type))
                     for (type, number) in XLA_DTYPE)
        join(rpad(get(names, number, "?"), DTYPE_WIDTH) for number in 0:maximum(values(XLA_DTYPE)))
    end

const DTYPE_COUNT = sizeof(DTYPE_NAMES) ÷ DTYPE_WIDTH

function put_dtype(t::Text, number::Int64)
    0 <= number < DTYPE_COUNT || return put(put(t, "XLA's type "), number)
    GC.@preserve DTYPE_NAMES for i in 1:DTYPE_WIDTH
        byte = unsafe_load(pointer(DTYPE_NAMES), DTYPE_WIDTH * number + i)
        byte == UInt8(' ') || (t = put(t, byte))
    end
    t
end

"`f32[2,3]`"
function put_type(t::Text, dtype::Int64, rank::Int64, dims::Ptr{Int64})
    t = put(put_dtype(t, dtype), UInt8('['))
    for i in 1:rank
        i == 1 || (t = put(t, UInt8(',')))
        t = put(t, unsafe_load(dims, i))
    end
    put(t, UInt8(']'))
end

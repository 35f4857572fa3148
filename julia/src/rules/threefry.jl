# threefry2x32: the hash behind JAX's random bits, of a key and a counter of two 32-bit words each;
# 20 rounds (Salmon, Moraes, Dror, Shaw 2011, Parallel random numbers: as easy as 1, 2, 3).

@primitive Threefry threefry2x32

haszerotangent(::Threefry) = true

function infer(op::Threefry, types, attrs)
    length(types) == 4 && all(t -> t.dtype === UInt32, types) ||
        infer_error(op, "takes four u32 operands, got $(join(map(type_text, types), ", "))")
    fill(TensorType(UInt32, common_shape(op, types)), 2)
end

function evaluate(::Threefry, x, attrs, types)
    y = [uninitialized(t) for t in types]
    words(v) = size(v) == size(y[1]) ? v : fill(v[], size(y[1]))        # literals
    for (i, counter) in enumerate(zip(map(words, x)...))
        y[1][i], y[2][i] = threefry(counter...)
    end
    y
end

rotated(x::UInt32, n) = x << n | x >> (32 - n)

const ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))

function threefry(key1::UInt32, key2::UInt32, x::UInt32, y::UInt32)
    keys = (key1, key2, key1 ⊻ key2 ⊻ 0x1bd11bda)
    x, y = x + keys[1], y + keys[2]
    for group in 1:5
        for n in ROTATIONS[isodd(group) ? 1 : 2]
            x += y
            y = rotated(y, n) ⊻ x
        end
        x, y = x + keys[group%3+1], y + keys[(group+1)%3+1] + UInt32(group)
    end
    x, y
end

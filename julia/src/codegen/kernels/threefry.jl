# threefry2x32: every pair of words alone.

isfusable(::Threefry, eqn) = true
ispointwise(::Threefry) = true
cost(::Threefry, eqn) = 100

"One of the two words."
struct ThreefryWord{K} end
@inline (::ThreefryWord{K})(key1, key2, x, y) where {K} = threefry_rounds(key1, key2, x, y)[K]
function element(::Threefry, n::Nest, eqn, slot, index)
    operands = Any[pointwise(n, a, index) for a in eqn.inputs]
    apply!(n, ThreefryWord{slot}(), UInt32, operands)
end

# The same rounds as evaluate's, in a straight line.
@inline function threefry_rounds(a::UInt32, b::UInt32, x::UInt32, y::UInt32)
    c = a ⊻ b ⊻ 0x1bd11bda
    x, y = x + a, y + b
    x, y = four_rounds(x, y, 13, 15, 26, 6, b, c + 0x00000001)
    x, y = four_rounds(x, y, 17, 29, 16, 24, c, a + 0x00000002)
    x, y = four_rounds(x, y, 13, 15, 26, 6, a, b + 0x00000003)
    x, y = four_rounds(x, y, 17, 29, 16, 24, b, c + 0x00000004)
    four_rounds(x, y, 13, 15, 26, 6, c, a + 0x00000005)
end
@inline function four_rounds(x, y, i, j, k, l, key1, key2)
    x, y = one_round(one_round(one_round(one_round((x, y), i), j), k), l)
    x + key1, y + key2
end
@inline one_round((x, y), n) = (x + y, rotated(y, n) ⊻ (x + y))

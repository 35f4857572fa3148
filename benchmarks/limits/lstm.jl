# A character model whose gates act bit by bit: a vector of bits at a time, padded to whole vectors.
# Kept are the gates, after their functions, and the cells.

const Bits = Vec{8}
# The gates forget, into, out and change, the cell before, tanh of the cell after, the hidden state
# before, and the input.
const KEPT = 8

@inline sigmoid(x) = 1.0 / (1.0 + exp(-x))
@inline tangent(x) = 1.0 - 2.0 / (1.0 + exp(2.0 * x))

function prepare(weights, biases, ends, state, text)
    bits, length = size(text)
    lanes = cld(bits, 8) * 8
    layers = size(weights, 3)
    pad(x) = zeros(lanes, size(x)[2:end]...)
    given = weights, biases, ends, state, text
    padded = map(pad, given)
    slopes = map(zero, (weights, biases, ends))
    sums = map(pad, slopes)
    kept = zeros(lanes, KEPT, layers, length - 1)
    seen = zeros(lanes, 2, length - 1)  # the last layer's hidden state, and the guess's softmax
    function run!()
        foreach(copy_padded!, padded, given)
        gradient!(sums, kept, seen, padded, bits)
        foreach(copy_padded!, slopes, sums)
    end
    run!, slopes
end

function copy_padded!(to, from)
    for k in 1:length(to)÷size(to, 1), i in 1:min(size(to, 1), size(from, 1))
        @inbounds to[i+(k-1)*size(to, 1)] = from[i+(k-1)*size(from, 1)]
    end
end

function gradient!(sums, kept, seen, (weights, biases, ends, state, text), bits)
    foreach(x -> fill!(x, 0.0), sums)
    for t in 1:size(text, 2)-1
        forward!(kept, seen, weights, biases, ends, state, text, t)
        guess!(seen, text, ends, t, bits)
    end
    fill!(state, 0.0)  # from here on cotangents
    for t in size(text, 2)-1:-1:1
        backward!(sums, kept, seen, weights, ends, state, text, t, bits)
    end
end

# Element i of a matrix's column, in memory.
@inline at(x, i, k) = i + size(x, 1) * (k - 1)
@inline at(x, i, k, l) = at(x, i, k + size(x, 2) * (l - 1))
@inline at(x, i, k, l, t) = at(x, i, k, l + size(x, 3) * (t - 1))
@inline get(x, place...) = load(Bits, x, at(x, place...))
@inline put!(x, v, place...) = store!(x, at(x, place...), v)
@inline more!(x, v, place...) = put!(x, get(x, place...) + v, place...)

@inline gate(x, weights, biases, place...) = get(biases, place...) + x * get(weights, place...)
@inline function by_gate!(by_weights, by_biases, gate, x, place...)
    more!(by_biases, gate, place...)
    more!(by_weights, gate * x, place...)
end

@inline function forward!(kept, seen, weights, biases, ends, state, text, t)
    for i in 1:8:size(text, 1)
        x = get(text, i, t) * get(ends, i, 1)
        for l in 1:size(weights, 3)
            hidden, cell = get(state, i, 1, l), get(state, i, 2, l)
            forget = sigmoid(gate(x, weights, biases, i, 1, l))
            out = sigmoid(gate(x, weights, biases, i, 3, l))
            into = sigmoid(gate(hidden, weights, biases, i, 2, l))
            change = tangent(gate(hidden, weights, biases, i, 4, l))
            new = cell * forget + into * change
            shown = tangent(new)
            put!(kept, forget, i, 1, l, t)
            put!(kept, into, i, 2, l, t)
            put!(kept, out, i, 3, l, t)
            put!(kept, change, i, 4, l, t)
            put!(kept, cell, i, 5, l, t)
            put!(kept, shown, i, 6, l, t)
            put!(kept, hidden, i, 7, l, t)
            put!(kept, x, i, 8, l, t)
            x = out * shown
            put!(state, x, i, 1, l)
            put!(state, new, i, 2, l)
        end
        put!(seen, x, i, 1, t)
        put!(seen, exp(x * get(ends, i, 2) + get(ends, i, 3)), i, 2, t)
    end
end

"The exponentials of the guesses become their softmax with a constant."
@inline function guess!(seen, text, ends, t, bits)
    total = 2.0
    @inbounds @simd for i in 1:bits
        total += seen[i, 2, t]
    end
    for i in 1:8:size(seen, 1)
        put!(seen, get(seen, i, 2, t) * (1 / total), i, 2, t)
    end
end

@inline function backward!(sums, kept, seen, weights, ends, state, text, t, bits)
    by_weights, by_biases, by_ends = sums
    scale = 1 / (bits * (size(text, 2) - 1))
    following = 0.0
    @inbounds @simd for i in 1:bits
        following += text[i, t+1]
    end
    for i in 1:8:size(text, 1)
        guess = scale * (following * get(seen, i, 2, t) - get(text, i, t + 1))
        more!(by_ends, guess * get(seen, i, 1, t), i, 2)
        more!(by_ends, guess, i, 3)
        x = guess * get(ends, i, 2)
        for above in 1:size(weights, 3)
            l = size(weights, 3) + 1 - above
            forget, into = get(kept, i, 1, l, t), get(kept, i, 2, l, t)
            out, change = get(kept, i, 3, l, t), get(kept, i, 4, l, t)
            before, shown = get(kept, i, 5, l, t), get(kept, i, 6, l, t)
            hidden, input = get(kept, i, 7, l, t), get(kept, i, 8, l, t)
            x = x + get(state, i, 1, l)
            cell = get(state, i, 2, l) + x * out * (1.0 - shown * shown)
            gates = cell * before * forget * (1.0 - forget), cell * change * into * (1.0 - into),
                x * shown * out * (1.0 - out), cell * into * (1.0 - change * change)
            by_gate!(by_weights, by_biases, gates[1], input, i, 1, l)
            by_gate!(by_weights, by_biases, gates[2], hidden, i, 2, l)
            by_gate!(by_weights, by_biases, gates[3], input, i, 3, l)
            by_gate!(by_weights, by_biases, gates[4], hidden, i, 4, l)
            x = gates[1] * get(weights, i, 1, l) + gates[3] * get(weights, i, 3, l)
            by_hidden = gates[2] * get(weights, i, 2, l) + gates[4] * get(weights, i, 4, l)
            put!(state, by_hidden, i, 1, l)
            put!(state, cell * forget, i, 2, l)
        end
        more!(by_ends, x * get(text, i, t), i, 1)
    end
end

# Coupled nodes of a mean and a precision. In a step all of a node waits for no other, but for the
# mean, which moves towards its parent's new one: that is a chain of one product and sum a node.

struct Tape
    rate::Matrix{Float64}     # a node's own rate, by which its mean moves
    apart::Matrix{Float64}    # the parent's mean less its own
    slopes::Array{Float64,3}  # of precision, of volatility: by the move, and by the new precision
end

struct Filters{W}
    nodes::Int
    inputs::Vector{Float64}
    tape::Tape
    mean::Vector{Float64}
    precision::Vector{Float64}
    surprise::Vector{Float64}
end

function prepare(log_volatility, rate, inputs, nodes)
    n, steps = Int(nodes), length(inputs)
    width = n < 8 ? n : 8
    lanes = cld(n, width) * width  # those beyond the last node are at rest
    tape = Tape(zeros(lanes, steps), zeros(lanes, steps), zeros(lanes, 4, steps))
    model = Filters{width}(n, inputs, tape, zeros(lanes), zeros(lanes), zeros(steps))
    slopes = zeros(2)
    run!() = gradient!(slopes, model, log_volatility, rate)
    run!, (slopes,)
end

function gradient!(slopes, model, log_volatility, rate)
    n = model.nodes
    fill!(model.mean, 0.0)
    fill!(model.precision, 1.0)
    for i in 1:n
        model.mean[i] = 0.1 * (i - 1) / n
        model.precision[i] = 1.0 + 0.1 * (i - 1)
    end
    for t in eachindex(model.inputs)
        precisions!(model, t, log_volatility, rate)
        means!(model, t)
    end
    fill!(model.mean, 0.0)  # from here on cotangents
    fill!(model.precision, 0.0)
    by_volatility, by_rate = backward!(model)
    slopes[1], slopes[2] = by_volatility, by_rate / rate
    nothing
end

@inline function precisions!(model::Filters{W}, t, log_volatility, rate) where {W}
    tape = model.tape
    lanes = size(tape.rate, 1)
    at, slope_at = (t - 1) * lanes, 4 * (t - 1) * lanes
    @inbounds for i in 1:W:lanes
        mean, precision = load(Vec{W}, model.mean, i), load(Vec{W}, model.precision, i)
        volatility = exp(log_volatility + 0.1 * mean)
        certain = 1.0 / (1.0 + precision * volatility)
        calm = 1.0 / (1.0 + volatility)
        predicted = precision * certain
        new = predicted + calm
        inverse = 1.0 / new
        damped = 1.0 / (1.0 + 0.5 * new)
        part = predicted * inverse
        store!(tape.rate, at + i, rate * part)
        store!(model.precision, i, new * damped)

        inverse = rate * inverse
        by_precision, by_volatility = certain * certain, predicted * predicted
        calm, damped = calm * calm, damped * damped
        rest = 1.0 - part
        store!(tape.slopes, slope_at + i, by_precision * inverse * rest)
        store!(tape.slopes, slope_at + lanes + i, by_precision * damped)
        moved = (calm * part - by_volatility * rest) * inverse
        store!(tape.slopes, slope_at + 2lanes + i, moved * volatility)
        store!(tape.slopes, slope_at + 3lanes + i, -(by_volatility + calm) * volatility * damped)
    end
end

@inline function means!(model, t)
    parent = model.inputs[t]
    @inbounds for i in 1:model.nodes
        apart = parent - model.mean[i]
        model.tape.apart[i, t] = apart
        parent = muladd(model.tape.rate[i, t], apart, model.mean[i])
        model.mean[i] = parent
    end
    model.surprise[t] = parent - model.inputs[t]
end

function backward!(model::Filters{W}) where {W}
    tape, steps = model.tape, length(model.inputs)
    lanes = size(tape.rate, 1)
    by_volatility, by_rate = Vec{W}(0.0), Vec{W}(0.0)
    for t in steps:-1:1
        at, slope_at = (t - 1) * lanes, 4 * (t - 1) * lanes
        @inbounds from_child = 2 * model.surprise[t] / steps
        @inbounds for i in model.nodes:-1:1
            model.mean[i] += from_child
            from_child = tape.rate[i, t] * model.mean[i]
        end
        @inbounds for i in 1:W:lanes
            mean, precision = load(Vec{W}, model.mean, i), load(Vec{W}, model.precision, i)
            rate = load(Vec{W}, tape.rate, at + i)
            move = load(Vec{W}, tape.apart, at + i) * mean
            by_rate += rate * move
            changed = load(Vec{W}, tape.slopes, slope_at + 2lanes + i) * move +
                load(Vec{W}, tape.slopes, slope_at + 3lanes + i) * precision
            by_volatility += changed
            store!(model.precision, i, load(Vec{W}, tape.slopes, slope_at + i) * move +
                load(Vec{W}, tape.slopes, slope_at + lanes + i) * precision)
            store!(model.mean, i, mean - rate * mean + 0.1 * changed)
        end
    end
    sum(by_volatility), sum(by_rate)
end

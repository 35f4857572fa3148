# The chain of `benchmarks/enzyme.py` written by hand: what Enzyme.jl makes of plain Julia,
# with no JAX in between.
using Enzyme

function chain!(out, rate, inputs, means, precisions)
    total = 0.0
    @inbounds for u in inputs
        parent = u
        for i in eachindex(means)
            volatility = exp(0.01 * rate[1] * means[i])
            precision = 1 / (1 / precisions[i] + volatility) + 1 / (1 + volatility)
            means[i] += 0.1 * (parent - means[i]) / precision
            precisions[i] = precision / (1 + precision)
            parent = means[i]
        end
        total += parent^2
    end
    out[1] = total
    nothing
end

function gradient(rate, inputs)
    means, precisions, slope = [0.1 * (i - 1) for i in 1:30], ones(30), [0.0]
    seconds = @elapsed autodiff(Reverse, chain!, Const, Duplicated([0.0], [1.0]),
        Duplicated([rate], slope), Const(inputs), Duplicated(means, zero(means)),
        Duplicated(precisions, zero(precisions)))
    slope[1], seconds
end

"The gradient, and the least time of `count` runs."
timed(rate, inputs, count) =
    (gradient(rate, inputs)[1], minimum(gradient(rate, collect(inputs))[2] for _ in 1:count))

# Models in plain Julia, whose twins in JAX are in test_traced_models.py.

logsumexp(x) = (m = maximum(x); m + log(sum(exp.(x .- m))))

"The log-likelihood of the rows of x in a mixture of Gaussians with axes along the coordinates."
function mixture(logits, means, logscales, x)
    n, d = size(x)
    total = zero(eltype(means))
    for i in 1:n
        terms = map(1:length(logits)) do k
            z = (x[i, :] .- means[k, :]) ./ exp.(logscales[k, :])
            logits[k] - sum(logscales[k, :]) - sum(abs2, z) / 2
        end
        total += logsumexp(terms)
    end
    total - n * (logsumexp(logits) + d * log(2 * pi) / 2)
end

"The oscillator of van der Pol with a drag."
force(u, p) = [u[2], p.mu * (1 - u[1]^2) * u[2] - p.stiffness * sin(u[1])]

function rungekutta(f, u, p, h)
    k1 = f(u, p)
    k2 = f(u .+ h / 2 .* k1, p)
    k3 = f(u .+ h / 2 .* k2, p)
    k4 = f(u .+ h .* k3, p)
    u .+ h / 6 .* (k1 .+ 2 .* k2 .+ 2 .* k3 .+ k4)
end

"The mean square of what the path of an oscillator is away from observations, a row for each time."
function misfit(p, start, observed)
    steps = size(observed, 1)
    path = zeros(eltype(start), steps, 2)
    u = start
    for n in 1:steps
        u = rungekutta(force, u, p, p.step)
        path[n, :] .= u
    end
    sum(abs2, path .- observed) / length(observed)
end

"The cross entropy of a network of two layers, on rows of inputs and of probabilities."
function network(p, x, targets)
    hidden = tanh.(x * p.first.weights .+ p.first.bias')
    scores = hidden * p.second.weights .+ p.second.bias'
    peaks = maximum(scores; dims = 2)
    logs = scores .- peaks .- log.(sum(exp.(scores .- peaks); dims = 2))
    -sum(targets .* logs) / size(x, 1)
end

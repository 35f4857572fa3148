# Models in plain Julia, each with its gradient written by hand.

using LinearAlgebra, Random

"""
A model: `f(x...)`, its gradient by hand, which gives a tuple of those by `x`, and `arguments(size)`."""
struct Model
    name::String
    f::Function
    gradient::Function
    arguments::Function
    size::Int
    small::Int      # for tests
end

# ---- heat in a rod, by Euler steps: loops over two arrays that are overwritten in turn

const HEAT_STEPS = 50
function heat(u, k, target)
    n = length(u)
    u, v = copy(u), similar(u)
    for _ in 1:HEAT_STEPS
        v[1], v[n] = u[1], u[n]
        for i in 2:n-1
            v[i] = u[i] + k[i] * (u[i-1] - 2u[i] + u[i+1])
        end
        u, v = v, u
    end
    misfit = zero(eltype(u))
    for i in 1:n
        misfit += (u[i] - target[i])^2
    end
    misfit
end

function heat_gradient(u, k, target)
    n = length(u)
    path = zeros(n, HEAT_STEPS + 1)
    path[:, 1] .= u
    @inbounds for t in 1:HEAT_STEPS
        path[1, t+1], path[n, t+1] = path[1, t], path[n, t]
        for i in 2:n-1
            path[i, t+1] = path[i, t] + k[i] * (path[i-1, t] - 2path[i, t] + path[i+1, t])
        end
    end
    ē = [2 * (path[i, HEAT_STEPS+1] - target[i]) for i in 1:n]
    v̄, ū, k̄ = copy(ē), zeros(n), zeros(n)
    @inbounds for t in HEAT_STEPS:-1:1
        fill!(ū, 0.0)
        ū[1], ū[n] = v̄[1], v̄[n]
        for i in 2:n-1
            d = k[i] * v̄[i]
            k̄[i] += v̄[i] * (path[i-1, t] - 2path[i, t] + path[i+1, t])
            ū[i] += v̄[i] - 2d
            ū[i-1] += d
            ū[i+1] += d
        end
        ū, v̄ = v̄, ū
    end
    v̄, k̄, -ē
end
heat_arguments(n, rng) = (randn(rng, n), 0.2 .+ 0.1 .* rand(rng, n), randn(rng, n))

# ---- the sweeps of Gauss and Seidel: a loop that reads what it has just written to the same array

const SWEEPS = 20
function relax(x, b)
    x = copy(x)
    for _ in 1:SWEEPS, i in 2:length(x)-1
        x[i] = (x[i-1] + x[i+1] + b[i]) / 2
    end
    sum(abs2, x)
end

function relax_gradient(x, b)
    n, x = length(x), copy(x)
    for _ in 1:SWEEPS, i in 2:n-1
        @inbounds x[i] = (x[i-1] + x[i+1] + b[i]) / 2
    end
    x̄, b̄ = 2 .* x, zeros(n)
    @inbounds for _ in 1:SWEEPS, i in n-1:-1:2
        d = x̄[i] / 2
        x̄[i] = 0
        x̄[i-1] += d
        x̄[i+1] += d
        b̄[i] += d
    end
    x̄, b̄
end
relax_arguments(n, rng) = (randn(rng, n), randn(rng, n) ./ n)

# ---- the log-likelihood of a mixture of Gaussians with axes along the coordinates, points in columns

function log_likelihood(logits, means, logscales, x)
    d, n = size(x)
    z = (reshape(x, d, 1, n) .- means) ./ exp.(logscales)
    squares = dropdims(sum(abs2, z; dims = 1); dims = 1)
    terms = logits .- vec(sum(logscales; dims = 1)) .- squares ./ 2
    peaks = maximum(terms; dims = 1)
    sum(peaks .+ log.(sum(exp.(terms .- peaks); dims = 1))) -
    n * (log(sum(exp.(logits))) + d * log(2pi) / 2)
end

function log_likelihood_gradient(logits, means, logscales, x)
    (d, n), K = size(x), length(logits)
    precisions = exp.(-logscales)
    offsets = [logits[k] - sum(view(logscales, :, k)) for k in 1:K]
    l̄, m̄, s̄, x̄ = zero(logits), zero(means), zero(logscales), zero(x)
    terms = zeros(K)
    @inbounds for i in 1:n
        for k in 1:K
            square = 0.0
            for j in 1:d
                square += ((x[j, i] - means[j, k]) * precisions[j, k])^2
            end
            terms[k] = offsets[k] - square / 2
        end
        peak, total = maximum(terms), 0.0
        for k in 1:K
            terms[k] = exp(terms[k] - peak)
            total += terms[k]
        end
        for k in 1:K
            weight = terms[k] / total
            l̄[k] += weight
            for j in 1:d
                z = (x[j, i] - means[j, k]) * precisions[j, k]
                slope = weight * z * precisions[j, k]
                m̄[j, k] += slope
                x̄[j, i] -= slope
                s̄[j, k] += weight * (z * z - 1)
            end
        end
    end
    l̄ .-= n .* exp.(logits) ./ sum(exp.(logits))
    l̄, m̄, s̄, x̄
end
mixture_arguments(n, rng) =
    (randn(rng, 8), randn(rng, 4, 8), 0.3 .* randn(rng, 4, 8), randn(rng, 4, n))

# ---- the fit of van der Pol's oscillator, by the classical method of Runge and Kutta

force(u, v, p) = v, p[1] * (1 - u^2) * v - p[2] * sin(u)
function oscillator_misfit(p, start, observed)
    h, (u, v) = p[3], start
    total = zero(u)
    for n in 1:size(observed, 2)
        a1, b1 = force(u, v, p)
        a2, b2 = force(u + h / 2 * a1, v + h / 2 * b1, p)
        a3, b3 = force(u + h / 2 * a2, v + h / 2 * b2, p)
        a4, b4 = force(u + h * a3, v + h * b3, p)
        u += h / 6 * (a1 + 2a2 + 2a3 + a4)
        v += h / 6 * (b1 + 2b2 + 2b3 + b4)
        total += (u - observed[1, n])^2 + (v - observed[2, n])^2
    end
    total / length(observed)
end

"The cotangents of u, v, p[1] and p[2] for those of `force(u, v, p)`."
force_pullback(u, v, p, ā, b̄) =
    (b̄ * (-2 * p[1] * u * v - p[2] * cos(u)), ā + b̄ * p[1] * (1 - u^2), b̄ * (1 - u^2) * v,
        -b̄ * sin(u))

function oscillator_gradient(p, start, observed)
    h, steps, scale = p[3], size(observed, 2), 2 / length(observed)
    us, vs = zeros(steps + 1), zeros(steps + 1)
    us[1], vs[1] = start
    @inbounds for n in 1:steps
        u, v = us[n], vs[n]
        a1, b1 = force(u, v, p)
        a2, b2 = force(u + h / 2 * a1, v + h / 2 * b1, p)
        a3, b3 = force(u + h / 2 * a2, v + h / 2 * b2, p)
        a4, b4 = force(u + h * a3, v + h * b3, p)
        us[n+1] = u + h / 6 * (a1 + 2a2 + 2a3 + a4)
        vs[n+1] = v + h / 6 * (b1 + 2b2 + 2b3 + b4)
    end
    ō = zero(observed)
    ū = v̄ = m̄ = s̄ = h̄ = 0.0
    @inbounds for n in steps:-1:1
        e, f = scale * (us[n+1] - observed[1, n]), scale * (vs[n+1] - observed[2, n])
        ō[1, n], ō[2, n] = -e, -f
        ū, v̄ = ū + e, v̄ + f
        u, v = us[n], vs[n]
        a1, b1 = force(u, v, p)
        u2, v2 = u + h / 2 * a1, v + h / 2 * b1
        a2, b2 = force(u2, v2, p)
        u3, v3 = u + h / 2 * a2, v + h / 2 * b2
        a3, b3 = force(u3, v3, p)
        u4, v4 = u + h * a3, v + h * b3
        a4, b4 = force(u4, v4, p)
        ha, hb = h / 6 * ū, h / 6 * v̄
        h̄ += (ū * (a1 + 2a2 + 2a3 + a4) + v̄ * (b1 + 2b2 + 2b3 + b4)) / 6
        x4, y4, m4, s4 = force_pullback(u4, v4, p, ha, hb)
        x3, y3, m3, s3 = force_pullback(u3, v3, p, 2ha + h * x4, 2hb + h * y4)
        x2, y2, m2, s2 = force_pullback(u2, v2, p, 2ha + h / 2 * x3, 2hb + h / 2 * y3)
        x1, y1, m1, s1 = force_pullback(u, v, p, ha + h / 2 * x2, hb + h / 2 * y2)
        h̄ += a3 * x4 + b3 * y4 + (a2 * x3 + b2 * y3 + a1 * x2 + b1 * y2) / 2
        m̄, s̄ = m̄ + m1 + m2 + m3 + m4, s̄ + s1 + s2 + s3 + s4
        ū, v̄ = ū + x1 + x2 + x3 + x4, v̄ + y1 + y2 + y3 + y4
    end
    [m̄, s̄, h̄], [ū, v̄], ō
end
oscillator_arguments(n, rng) = ([1.2, 0.8, 0.02], [1.0, -0.5], randn(rng, 2, n))

# ---- the cross entropy of a network of two layers, samples in columns

function cross_entropy(w1, b1, w2, b2, x, targets)
    scores = w2 * tanh.(w1 * x .+ b1) .+ b2
    peaks = maximum(scores; dims = 1)
    logs = scores .- peaks .- log.(sum(exp.(scores .- peaks); dims = 1))
    -sum(targets .* logs) / size(x, 2)
end

function cross_entropy_gradient(w1, b1, w2, b2, x, targets)
    n = size(x, 2)
    hidden = tanh.(w1 * x .+ b1)
    scores = w2 * hidden .+ b2
    shifted = scores .- maximum(scores; dims = 1)
    shares = exp.(shifted)
    totals = sum(shares; dims = 1)
    shares ./= totals
    s̄ = (shares .* sum(targets; dims = 1) .- targets) ./ n
    t̄ = (log.(totals) .- shifted) ./ n
    h̄ = (w2' * s̄) .* (1 .- hidden .^ 2)
    h̄ * x', vec(sum(h̄; dims = 2)), s̄ * hidden', vec(sum(s̄; dims = 2)), w1' * h̄, t̄
end
function network_arguments(n, rng)
    targets = rand(rng, 10, n)
    (0.3 .* randn(rng, 48, 32), randn(rng, 48), 0.3 .* randn(rng, 10, 48), randn(rng, 10),
        randn(rng, 32, n), targets ./ sum(targets; dims = 1))
end

const MODELS = [
    Model("heat in a rod", heat, heat_gradient, heat_arguments, 100, 9),
    Model("Gauss-Seidel sweeps", relax, relax_gradient, relax_arguments, 200, 8),
    Model("Gaussian mixture", log_likelihood, log_likelihood_gradient, mixture_arguments, 2000, 5),
    Model("Runge-Kutta fit", oscillator_misfit, oscillator_gradient, oscillator_arguments, 1000, 30),
    Model("two-layer network", cross_entropy, cross_entropy_gradient, network_arguments, 512, 6),
]
arguments(m::Model, size) = m.arguments(size, MersenneTwister(size))

# What the tracing of Julia functions runs through: an image is compiled for it. Nothing becomes a
# kernel here, whose addresses no other process has.

module TracingWorkload
using JaxprAD, LinearAlgebra

function network(p, x, y)
    hidden = tanh.(p.w1 * x .+ p.b1)
    scores = p.w2 * hidden .- y
    peaks = maximum(scores; dims = 1)
    sum(abs2, scores .- peaks) / length(y) + log(sum(exp.(hidden[1, :])))
end

"Loops over arrays that are overwritten, which are rolled up again."
function heat(u, k)
    u, v = copy(u), similar(u)
    for _ in 1:4
        v[1], v[end] = u[1], u[end]
        for i in 2:length(u)-1
            v[i] = u[i] + k[i] * (u[i-1] - 2u[i] + u[i+1])
        end
        u, v = v, u
    end
    sum(abs2, u)
end

function misfit(p, start, observed)
    u, h, path = start, p.step, zeros(eltype(start), size(observed))
    force(u) = [u[2], p.mu * (1 - u[1]^2) * u[2] - p.stiffness * sin(u[1])]
    for n in 1:size(observed, 1)
        a = force(u)
        u = u .+ h / 2 .* (a .+ force(u .+ h .* a))
        path[n, :] .= u
    end
    sum(abs2, path .- observed)
end

solved(a, b) = dot(b, (a * a' + I) \ b) + logdet(a * a' + I)

counted(x) = while_loop(s -> s[1] < 3, s -> (s[1] + 1, s[2] * x), (0.0, one(x)))[2]

function run()
    p = (w1 = ones(3, 2), b1 = zeros(3), w2 = ones(2, 3))
    x, y = ones(2, 5), ones(2, 5)
    oscillator = (mu = 1.0, stiffness = 1.0, step = 0.1)
    optimize(trace((p, x, y) -> gradient(p -> network(p, x, y), p), p, x, y).program)
    optimize(trace((u, k) -> gradient(heat, u, k), ones(9), ones(9)).program)
    gradient((p, u) -> misfit(p, u, ones(8, 2)), oscillator, ones(2))
    gradient(solved, ones(3, 3), ones(3))
    jvp(counted, (1.0,), (1.0,))
    hvp(x -> sum(sin.(x) .^ 2), ones(3), ones(3))
    vmap(x -> sum(abs2, x))(x)
    sprint(print, trace(network, p, x, y))
    mktempdir() do folder
        path = joinpath(folder, "network.pybridge")
        save(path, trace(network, p, x, y))
        load(path)(p, x, y)
    end
end
end

# Newton's method on the likelihood of a hidden Markov model. At each of its points the weights of
# all moves are kept; conjugate gradients then need sums of products alone. A vector has a lane for
# each state.

"The logarithms of probabilities, and what goes with them, for a point or a direction of theta."
struct Parts
    first::Matrix{Float64}  # by state: of one column
    moves::Matrix{Float64}  # from the state of a lane to the state of a column
    shows::Matrix{Float64}  # by state, the symbol of a column
end

Parts(states, symbols) = Parts(zeros(states, 1), zeros(states, states), zeros(states, symbols))

struct Model{S}
    observed::Vector{Int}
    logs::Parts
    chances::Parts
    slopes::Parts               # by the logarithms
    tangents::Parts             # of the logarithms
    bends::Parts                # tangents of the slopes
    across::Matrix{Float64}     # moves, with the states that are reached in the lanes
    weights::Array{Float64,3}   # of the moves of a step: from the state in the lane
    reached::Array{Float64,3}   # the same, to the state in the lane
    adjoints::Matrix{Float64}   # by the logarithms at each step
    along::Matrix{Float64}      # the tangents of those
    last::Vector{Float64}       # the chances at the end
end

function prepare(theta, observed, states, symbols, newton, conjugate)
    s, n = Int(states), length(observed)
    parts() = Parts(s, Int(symbols))
    model = Model{s}(
        Int.(observed) .+ 1, parts(), parts(), parts(), parts(), parts(), zeros(s, s),
        zeros(s, s, n), zeros(s, s, n), zeros(s, n), zeros(s, n), zeros(s))
    x, value = zero(theta), zeros(1)
    space = ntuple(_ -> zero(theta), Val(5))
    steps = Int(newton), Int(conjugate)
    run!() = minimize!(x, value, space, model, theta, steps)
    run!, (x, value)
end

# Newton's method, and conjugate gradients that stand still from where the curvature is not positive.

function minimize!(x, value, space, model, theta, (newton, conjugate))
    slope, p, residual, d, bent = space
    x .= theta
    for _ in 1:newton
        gradient!(slope, model, x)
        p .= 0.0
        residual .= slope
        d .= .-slope
        squared = product(slope, slope)
        for _ in 1:conjugate
            bend!(bent, model, d)
            curvature = product(d, bent)
            good = curvature > 1e-12 * squared
            alpha = good ? squared / curvature : 0.0
            residual .+= alpha .* bent
            p .+= alpha .* d
            left = product(residual, residual)
            beta = good ? left / max(squared, 1e-300) : 0.0
            good && (d .= beta .* d .- residual)
            squared = left
        end
        x .+= p
    end
    value[1] = objective!(model, x)
    nothing
end

function product(a, b)
    total = 0.0
    @inbounds @simd for k in eachindex(a, b)
        total += a[k] * b[k]
    end
    total
end

# Between theta, whose rows are in memory one after the other, and its parts.

function unpack!(parts::Parts, theta)
    copyto!(parts.first, 1, theta, 1, size(parts.first, 1))
    place = size(parts.first, 1)
    for part in (parts.moves, parts.shows), i in axes(part, 1), k in axes(part, 2)
        @inbounds part[i, k] = theta[place += 1]
    end
end

function pack!(theta, parts::Parts, scale, others)
    for i in axes(parts.first, 1)
        @inbounds theta[i] = parts.first[i] + scale * others[i]
    end
    place = size(parts.first, 1)
    for part in (parts.moves, parts.shows), i in axes(part, 1), k in axes(part, 2)
        place += 1
        @inbounds theta[place] = part[i, k] + scale * others[place]
    end
end

"The same for both parts whose chances add up to one in each row."
function each(f::F, parts::Vararg{Parts,N}) where {F,N}
    f(map(p -> p.moves, parts)...)
    f(map(p -> p.shows, parts)...)
end

"The same of the first state's chances, whose sum is over lanes."
function normalize_first!(logs, chances)
    total = sum(exp, logs)
    logs .-= log(total)
    chances .= exp.(logs)
end

function normalize!(::Type{V}, logs, chances) where {V}
    total = zero(V)
    for k in axes(logs, 2)
        total += exp(column(V, logs, k))
    end
    total = log(total)
    for k in axes(logs, 2)
        reduced = column(V, logs, k) - total
        store!(logs, 1 + size(logs, 1) * (k - 1), reduced)
        store!(chances, 1 + size(logs, 1) * (k - 1), exp(reduced))
    end
end

@inline column(::Type{V}, m, k) where {V} = load(V, m, 1 + size(m, 1) * (k - 1))
@inline column(::Type{V}, m, k, t) where {V} = column(V, m, k + size(m, 2) * (t - 1))
@inline column!(m, v, k) = store!(m, 1 + size(m, 1) * (k - 1), v)
@inline column!(m, v, k, t) = column!(m, v, k + size(m, 2) * (t - 1))

# The value, with the weights of all moves.

function objective!(model::Model{S}, theta) where {S}
    V, logs = Vec{S}, model.logs
    unpack!(logs, theta)
    normalize_first!(logs.first, model.chances.first)
    each((x, y) -> normalize!(V, x, y), logs, model.chances)
    transpose!(model.across, logs.moves)
    alpha = column(V, logs.first, 1) + column(V, logs.shows, model.observed[1])
    for t in 2:length(model.observed)
        highest = maximum(map(x -> x.value, alpha.lanes))
        total = zero(V)
        for i in 1:S
            weight = exp((alpha.lanes[i].value - highest) + column(V, model.across, i))
            column!(model.reached, weight, i, t)
            total += weight
        end
        inverse = 1.0 / total
        for i in 1:S
            column!(model.reached, column(V, model.reached, i, t) * inverse, i, t)
        end
        alpha = log(total) + highest + column(V, logs.shows, model.observed[t])
    end
    highest = maximum(map(x -> x.value, alpha.lanes))
    ends = exp(alpha - highest)
    store!(model.last, 1, ends * (1 / sum(ends)))
    0.1 * product(theta, theta) - (log(sum(ends)) + highest)
end

function transpose!(to, from)
    for k in axes(from, 2), i in axes(from, 1)
        @inbounds to[k, i] = from[i, k]
    end
end

function gradient!(slope, model::Model{S}, theta) where {S}
    V, slopes = Vec{S}, model.slopes
    objective!(model, theta)
    foreach(x -> fill!(x, 0.0), (slopes.moves, slopes.shows))
    beta = -load(V, model.last, 1)
    for t in length(model.observed):-1:2
        column!(model.adjoints, beta, t)
        symbol = model.observed[t]
        column!(slopes.shows, column(V, slopes.shows, symbol) + beta, symbol)
        before = zero(V)
        for j in 1:S
            for i in 1:S
                @inbounds model.weights[i, j, t] = model.reached[j, i, t]
            end
            part = column(V, model.weights, j, t) * beta.lanes[j].value
            column!(slopes.moves, column(V, slopes.moves, j) + part, j)
            before += part
        end
        beta = before
    end
    column!(slopes.first, beta, 1)
    symbol = model.observed[1]
    column!(slopes.shows, column(V, slopes.shows, symbol) + beta, symbol)
    through_logs!(model.bends, model.chances, slopes)
    pack!(slope, model.bends, 0.2, theta)
end

"Slopes by what the logarithms were made of."
function through_logs!(to, chances, slopes)
    to.first .= slopes.first .- chances.first .* sum(slopes.first)
    each(through_logs_of_rows!, to, chances, slopes)
end

function through_logs_of_rows!(to, chances, slopes)
    for i in axes(to, 1)
        total = 0.0
        for k in axes(to, 2)
            @inbounds total += slopes[i, k]
        end
        for k in axes(to, 2)
            @inbounds to[i, k] = slopes[i, k] - chances[i, k] * total
        end
    end
end

# The Hessian times a direction, where the gradient was last computed.

function bend!(bent, model::Model{S}, direction) where {S}
    V, tangents, bends = Vec{S}, model.tangents, model.bends
    unpack!(tangents, direction)
    tangents.first .-= product(model.chances.first, tangents.first)
    each(centre!, tangents, model.chances)
    transpose!(model.across, tangents.moves)
    forwards!(model)
    backwards!(model)
    bend_logs!(bends, model.chances, model.slopes, tangents)
    pack!(bent, bends, 0.2, direction)
end

function centre!(tangents, chances)
    for i in axes(tangents, 1)
        mean = 0.0
        for k in axes(tangents, 2)
            @inbounds mean += chances[i, k] * tangents[i, k]
        end
        for k in axes(tangents, 2)
            @inbounds tangents[i, k] -= mean
        end
    end
end

function forwards!(model::Model{S}) where {S}
    V, shows = Vec{S}, model.tangents.shows
    alpha = column(V, model.tangents.first, 1) + column(V, shows, model.observed[1])
    column!(model.along, alpha, 1)
    for t in 2:length(model.observed)
        after = column(V, shows, model.observed[t])
        for i in 1:S
            moved = alpha.lanes[i].value + column(V, model.across, i)
            after += column(V, model.reached, i, t) * moved
        end
        alpha = after
        column!(model.along, alpha, t)
    end
end

function backwards!(model::Model{S}) where {S}
    V, shows, bends = Vec{S}, model.tangents.shows, model.bends
    foreach(x -> fill!(x, 0.0), (bends.moves, bends.shows))
    last, moved = load(V, model.last, 1), column(V, model.along, length(model.observed))
    beta = last * sum(last * moved) - last * moved
    for t in length(model.observed):-1:2
        symbol = model.observed[t]
        column!(bends.shows, column(V, bends.shows, symbol) + beta, symbol)
        adjoint, before = column(V, model.adjoints, t), column(V, model.along, t - 1)
        moved = column(V, model.along, t) - column(V, shows, symbol)
        # W_ij ((a_i + m_ij - moved_j) adjoint_j + beta_j), with what does not depend on i first
        own = beta - moved * adjoint
        summed = zero(V)
        for j in 1:S
            part = (before + column(V, model.tangents.moves, j)) * adjoint.lanes[j].value
            part = column(V, model.weights, j, t) * (part + own.lanes[j].value)
            column!(bends.moves, column(V, bends.moves, j) + part, j)
            summed += part
        end
        beta = summed
    end
    symbol = model.observed[1]
    column!(bends.shows, column(V, bends.shows, symbol) + beta, symbol)
    column!(bends.first, beta, 1)
end

"b - p sum(b) moves by b' - p' sum(b) - p sum(b'), where p' is p times the logarithm's tangent."
function bend_logs!(bends, chances, slopes, tangents)
    bends.first .-= chances.first .* (tangents.first .* sum(slopes.first) .+ sum(bends.first))
    each(bend_rows!, bends, chances, slopes, tangents)
end

function bend_rows!(bends, chances, slopes, tangents)
    for i in axes(bends, 1)
        total = moved = 0.0
        for k in axes(bends, 2)
            @inbounds total += slopes[i, k]
            @inbounds moved += bends[i, k]
        end
        for k in axes(bends, 2)
            @inbounds bends[i, k] -= chances[i, k] * (tangents[i, k] * total + moved)
        end
    end
end

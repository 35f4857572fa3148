# Four bodies, one in each lane. Body i meets i + 1 and i + 2, counted round: six pairs in two
# vectors, where the second has each of its two pairs twice.

const Bodies = Vec{4}
const Space = NTuple{3,Bodies}

@inline next(x::Bodies) = shuffled(x, Val((1, 2, 3, 0)))
@inline previous(x::Bodies) = shuffled(x, Val((3, 0, 1, 2)))
@inline opposite(x::Bodies) = shuffled(x, Val((2, 3, 0, 1)))
@inline dot(a::Space, b::Space) = (a[1] * b[1] + a[2] * b[2]) + a[3] * b[3]
@inline plus(x::Space, factor, y::Space) =
    x[1] + factor * y[1], x[2] + factor * y[2], x[3] + factor * y[3]
@inline less(x::Space, y::Space) = x[1] - y[1], x[2] - y[2], x[3] - y[3]
@inline scaled(factor, x::Space) = factor * x[1], factor * x[2], factor * x[3]
@inline next(x::Space) = next(x[1]), next(x[2]), next(x[3])
@inline previous(x::Space) = previous(x[1]), previous(x[2]), previous(x[3])
@inline opposite(x::Space) = opposite(x[1]), opposite(x[2]), opposite(x[3])

"What is kept of the pairs at a place: their strengths s^(-3/2), and the derivatives of those by s."
struct Met
    strength::NTuple{2,Bodies}
    slope::NTuple{2,Bodies}
end

function prepare(masses, q, v, steps, dt, softening)
    path = Vector{NTuple{2,Tuple{Space,Met}}}(undef, Int(steps))
    slopes = zeros(4), zeros(3, 4), zeros(3, 4)
    run!() = gradient!(slopes, path, masses, q, v, dt, softening)
    run!, slopes
end

@inline space(x) = ntuple(k -> vector(x[k, 1], x[k, 2], x[k, 3], x[k, 4]), Val(3))

function gradient!((by_masses, by_q, by_v), path, masses, q, v, dt, softening)
    m = load(Bodies, masses, 1)
    q, v = forward!(path, m, space(q), space(v), dt, softening)
    start = 0.5 * dot(v, v), scaled(2.0, q), scaled(m, v)
    m_bar, q_bar, v_bar = backward(path, m, start, dt)
    store!(by_masses, 1, m_bar)
    for body in 1:4, k in 1:3
        @inbounds by_q[k, body], by_v[k, body] = q_bar[k][body], v_bar[k][body]
    end
end

function forward!(path, m, q, v, dt, softening)
    @inbounds for t in eachindex(path)
        first, met = acceleration(m, q, softening)
        before = (q, met)
        v = plus(v, 0.5 * dt, first)
        q = plus(q, dt, v)
        second, met = acceleration(m, q, softening)
        path[t] = (before, (q, met))
        v = plus(v, 0.5 * dt, second)
    end
    q, v
end

@inline function acceleration(m, q, softening)
    one, two = less(next(q), q), less(opposite(q), q)
    g, slope = strength(dot(one, one) + softening)
    h, slope_two = strength(dot(two, two) + softening)
    pulled, pulling, across = next(m) * g, m * g, opposite(m) * h
    total = plus(scaled(pulled, one), across, two)
    less(total, previous(scaled(pulling, one))), Met((g, h), (slope, slope_two))
end

@inline function strength(s)
    inverse = 1.0 / s
    g = inverse * sqrt(inverse)
    g, -1.5 * g * inverse
end

function backward(path, m, (m_bar, q_bar, v_bar), dt)
    @inbounds for t in reverse(eachindex(path))
        before, after = path[t]
        m_bar, q_bar = adjoint(m, after, m_bar, q_bar, scaled(0.5 * dt, v_bar))
        v_bar = plus(v_bar, dt, q_bar)
        m_bar, q_bar = adjoint(m, before, m_bar, q_bar, scaled(0.5 * dt, v_bar))
    end
    m_bar, q_bar, v_bar
end

"Of the accelerations, whose cotangent is `a`: a pair pulls by m_j g d and -m_i g d, d = q_j - q_i."
@inline function adjoint(m, (q, met), m_bar, q_bar, a)
    one, two = less(next(q), q), less(opposite(q), q)
    beside, across = next(a), opposite(a)
    (g, h), (slope, slope_two) = met.strength, met.slope
    m_bar += previous(g * dot(one, a)) - g * dot(one, beside)
    m_bar -= h * dot(two, across)
    pull = plus(scaled(next(m), a), -m, beside)
    d_one = plus(scaled(g, pull), 2.0 * slope * dot(pull, one), one)
    pull = plus(scaled(opposite(m), a), -m, across)
    d_two = plus(scaled(h, pull), 2.0 * slope_two * dot(pull, two), two)
    m_bar, less(plus(less(q_bar, d_one), 1.0, previous(d_one)), d_two)
end

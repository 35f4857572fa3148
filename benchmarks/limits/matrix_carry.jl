# A 3x3 matrix times a polynomial of another, many times. Rows are vectors of four, with a lane to
# spare.

const Row = Vec{4}
const Rows = NTuple{3,Row}

function prepare(generator, target, steps, dt)
    path, slope = Vector{Rows}(undef, Int(steps)), zeros(3, 3)
    run!() = gradient!(slope, path, generator, rows(target), dt)
    run!, (slope,)
end

# In memory the last axis comes first: element i, k of a matrix is m[k, i].
rows(m) = ntuple(i -> vector(m[1, i], m[2, i], m[3, i], 0.0), Val(3))
transposed(a) = ntuple(k -> (a[1][k], a[2][k], a[3][k]), Val(3))
@inline combined(r, m) = (r[1] * m[1] + r[2] * m[2]) + r[3] * m[3]
@inline product(a, m) = combined(a[1], m), combined(a[2], m), combined(a[3], m)
@inline scaled(factor, x) = factor * x[1], factor * x[2], factor * x[3]
@inline plus(x, factor, y) = x[1] + factor * y[1], x[2] + factor * y[2], x[3] + factor * y[3]
@inline row_times(sums, x, y) = sums[1] + x * y[1], sums[2] + x * y[2], sums[3] + x * y[3]
@inline outer(sums, x, y) =
    row_times(sums[1], x[1], y), row_times(sums[2], x[2], y), row_times(sums[3], x[3], y)

function gradient!(slope, path, generator, target, dt)
    a = transposed(transposed(rows(generator)))
    last = forward!(path, a, dt)
    sums = backward(path, a, scaled(2.0, plus(last, -1.0, target)), dt)
    for i in 1:3, k in 1:3
        @inbounds slope[k, i] = dt * sum(sums[i][k])
    end
end

function forward!(path, a, dt)
    m = (vector(1.0, 0.0, 0.0, 0.0), vector(0.0, 1.0, 0.0, 0.0), vector(0.0, 0.0, 1.0, 0.0))
    @inbounds for t in eachindex(path)
        path[t] = m
        once = product(a, m)
        m = plus(m, dt, plus(once, 0.5 * dt, product(a, once)))
    end
    m
end

function backward(path, a, cotangent, dt)
    back = transposed(a)
    sums = ntuple(_ -> (zero(Row), zero(Row), zero(Row)), Val(3))  # of the slopes, by lane
    @inbounds for t in reverse(eachindex(path))
        m = path[t]
        by_once = plus(cotangent, 0.5 * dt, product(back, cotangent))
        sums = outer(sums, by_once, m)
        sums = outer(sums, scaled(0.5 * dt, cotangent), product(a, m))
        cotangent = plus(cotangent, dt, product(back, by_once))
    end
    sums
end

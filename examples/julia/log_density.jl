# A regression with Student's t errors: the log posterior density of intercept, slope and log scale,
# up to a constant, for data that Python passes.

function log_density(q, x, y)
    a, b, s = q.intercept, q.slope, exp(q.log_scale)
    nu = 4.0
    total = -(a^2 + b^2) / 200 - q.log_scale^2 / 2
    for i in eachindex(x)
        z = (y[i] - a - b * x[i]) / s
        total -= (nu + 1) / 2 * log1p(z^2 / nu) + q.log_scale
    end
    total
end

"""
Its gradient by hand, for machines without Enzyme.jl: `vjp(arguments, cotangent)`, one cotangent
for each argument."""
function log_density_vjp((q, x, y), ct)
    s, nu = exp(q.log_scale), 4.0
    da, db, ds = -q.intercept / 100, -q.slope / 100, -q.log_scale
    dx, dy = zeros(length(x)), zeros(length(x))
    for i in eachindex(x)
        z = (y[i] - q.intercept - q.slope * x[i]) / s
        w = (nu + 1) * z / (nu + z^2) / s      # -d/dz of the term, over s
        da += w
        db += w * x[i]
        ds += w * z * s - 1
        dx[i] = ct * w * q.slope
        dy[i] = -ct * w
    end
    (intercept = ct * da, slope = ct * db, log_scale = ct * ds), dx, dy
end

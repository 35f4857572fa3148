# Lorenz's equations by Euler's method, and their adjoint: three numbers a step are kept.

function prepare(parameters, state, steps, dt)
    path = zeros(3, Int(steps))
    slopes, start = zeros(3), zeros(3)
    run!() = gradient!(slopes, start, path, parameters, state, dt)
    run!, (slopes, start)
end

function gradient!(slopes, start, path, parameters, state, dt)
    x, y, z = forward!(path, parameters, state, dt)
    backward!(slopes, start, path, parameters, (2x, 2y, 2z), dt)
    nothing
end

function forward!(path, (sigma, rho, beta), (x, y, z), dt)
    @inbounds for t in axes(path, 2)
        path[1, t], path[2, t], path[3, t] = x, y, z
        dx, dy, dz = sigma * (y - x), muladd(x, rho - z, -y), muladd(x, y, -beta * z)
        x, y, z = muladd(dt, dx, x), muladd(dt, dy, y), muladd(dt, dz, z)
    end
    x, y, z
end

function backward!(slopes, start, path, (sigma, rho, beta), (u, v, w), dt)
    by_sigma = by_rho = by_beta = 0.0
    own_x, own_y, own_z = 1 - dt * sigma, 1 - dt, 1 - dt * beta
    @inbounds for t in reverse(axes(path, 2))
        x, y, z = path[1, t], path[2, t], path[3, t]
        by_sigma = muladd(u, y - x, by_sigma)
        by_rho = muladd(v, x, by_rho)
        by_beta = muladd(w, z, by_beta)
        dt_x = dt * x
        u, v, w = muladd(u, own_x, muladd(v, dt * (rho - z), w * (dt * y))),
            muladd(v, own_y, muladd(u, dt * sigma, w * dt_x)),
            muladd(w, own_z, -(v * dt_x))
    end
    slopes .= (dt * by_sigma, dt * by_rho, -dt * by_beta)
    start .= (u, v, w)
end

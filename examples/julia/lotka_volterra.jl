# Predators and prey (Lotka 1925, Volterra 1926): x' = αx - βxy, y' = δxy - γy, by the classical
# Runge-Kutta method, in plain Julia.

function rates!(d, u, p)
    d[1] = p.alpha * u[1] - p.beta * u[1] * u[2]
    d[2] = p.delta * u[1] * u[2] - p.gamma * u[2]
    nothing
end

"Fills `path`, one row for each time, from the start `u0`."
function simulate!(path, u0, p)
    h = 0.1
    u = [u0[1], u0[2]]
    v, k1, k2, k3, k4 = (similar(u) for _ in 1:5)
    for n in 1:size(path, 1)
        path[n, 1], path[n, 2] = u[1], u[2]
        rates!(k1, u, p)
        for i in 1:2
            v[i] = u[i] + h / 2 * k1[i]
        end
        rates!(k2, v, p)
        for i in 1:2
            v[i] = u[i] + h / 2 * k2[i]
        end
        rates!(k3, v, p)
        for i in 1:2
            v[i] = u[i] + h * k3[i]
        end
        rates!(k4, v, p)
        for i in 1:2
            u[i] += h / 6 * (k1[i] + 2k2[i] + 2k3[i] + k4[i])
        end
    end
    nothing
end

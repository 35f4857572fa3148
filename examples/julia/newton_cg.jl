# Newton's method with conjugate gradients, in Julia alone: of the Hessian it needs products with
# vectors, which are forward over reverse mode, and no matrix. Run it as
#
#     julia --project=julia examples/julia/newton_cg.jl

using JaxprAD, LinearAlgebra

"The chained function of Rosenbrock (1960): a curved valley, its minimum 0 at (1, …, 1)."
function rosenbrock(x)
    total = zero(eltype(x))
    for i in 1:length(x)-1
        total += 100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
    end
    total
end

"Brown's function, whose exponents are variables too: its minimum 0 at (0, …, 0)."
function brown(x)
    total = zero(eltype(x))
    for i in 1:length(x)-1
        a, b = x[i]^2, x[i+1]^2
        total += a^(b + 1) + b^(a + 1)
    end
    total
end

"What `newton_cg` has found, and what it took."
struct Minimum
    x::Vector{Float64}
    value::Float64
    slope::Float64          # norm of the gradient
    steps::Int
    products::Int           # with the Hessian
end
Base.show(io::IO, m::Minimum) =
    print(io, "f = ", m.value, ", |gradient| = ", m.slope, " after ", m.steps, " steps, ",
        m.products, " Hessian-vector products")

"""
    newton_cg(f, x; tolerance = 1e-8, most_steps = 10_000) -> Minimum

A minimum of `f` near `x`: Newton's method, whose systems are solved by conjugate gradients
(Steihaug 1983), the more exactly the smaller the gradient is, with a line search."""
function newton_cg(f, x; tolerance = 1e-8, most_steps = 10_000)
    value_and_slope = jit(x -> value_and_gradient(f, x))
    value, product = jit(f), jit((x, v) -> hvp(f, x, v))
    y, g = value_and_slope(x)
    steps = products = 0
    while norm(g) > tolerance && steps < most_steps
        direction, used = newton_direction(v -> product(x, v), g)
        t = shortened(t -> value(x + t * direction), y, dot(g, direction))
        t == 0 && break         # rounding hides any further descent
        x = x + t * direction
        y, g = value_and_slope(x)
        steps, products = steps + 1, products + used
    end
    Minimum(x, y, norm(g), steps, products)
end

"""
The solution d of H d = -g, `product(v)` being H v, to a residual that falls faster than g, or up to
where H is not positive; and how many products that took."""
function newton_direction(product, g)
    enough = min(0.5, sqrt(norm(g))) * norm(g)
    d, r = zero(g), -g
    p, squares = copy(r), dot(r, r)
    for k in 1:2length(g)
        h = product(p)
        curvature = dot(p, h)
        curvature <= eps() * dot(p, p) && return (k == 1 ? -g : d), k
        step = squares / curvature
        d += step * p
        r -= step * h
        before, squares = squares, dot(r, r)
        sqrt(squares) <= enough && return d, k
        p = r + squares / before * p
    end
    d, 2length(g)
end

"The first of 1, 1/2, 1/4 … that descends as a line of this slope promises, or 0."
function shortened(value, y, slope)
    t = 1.0
    while t > 1e-12
        value(t) <= y + 1e-4t * slope && return t
        t /= 2
    end
    0.0
end

if abspath(PROGRAM_FILE) == @__FILE__
    n = 1000
    println("Rosenbrock, n = $n: ", newton_cg(rosenbrock, collect(1:n) ./ (n + 1)))
    println("Brown, n = $n: ", newton_cg(brown, [isodd(i) ? -1.0 : 1.0 for i in 1:n]))
end

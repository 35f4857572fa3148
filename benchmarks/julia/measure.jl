# Gradients of traced Julia functions compared with those written by hand, on the same data, in a table:
#
#     julia --project=julia benchmarks/julia/measure.jl [NAME…]
#
# Where Enzyme.jl is among the packages of this Julia, also compared with its gradients of the same functions.

using JaxprAD, Dates
const HAS_ENZYME = Base.find_package("Enzyme") !== nothing
HAS_ENZYME && @eval using Enzyme: Active, Const, Duplicated, Reverse, autodiff
include("models.jl")

"The least time of a call in seconds, of as many as fit into the time given."
function least_seconds(f, x, seconds = 1.0)
    least, until = Inf, time() + seconds
    while time() < until
        least = min(least, @elapsed f(x...))
    end
    least
end

"The value of a call, and how long it took."
timed_call(f, x) = (start = time(); y = f(x...); (y, time() - start))

furthest(a, b) = maximum(maximum(abs, u - v) / max(maximum(abs, v), 1e-300) for (u, v) in zip(a, b))

"The gradient by Enzyme.jl: the least time, or the exception that it ends with."
function enzyme_time(m::Model, x, wanted)
    HAS_ENZYME || return "-"
    function gradient_of(x...)
        shadows = map(zero, x)
        autodiff(Reverse, Const(m.f), Active, map(Duplicated, x, shadows)...)
        shadows
    end
    try
        check_error(m, "Enzyme's", gradient_of(x...), wanted)
        text(least_seconds(gradient_of, x))
    catch e
        string(nameof(typeof(e)))
    end
end
function check_error(m, whose, given, wanted)
    error = furthest(given, wanted)
    error < 1e-9 || throw(ErrorException("$(m.name): $whose gradients differ by $error"))
end

function row(m::Model)
    x = arguments(m, m.size)
    gradient_of = jit((x...) -> gradient(m.f, x...))
    given, first_traced = timed_call(gradient_of, x)
    wanted, first_by_hand = timed_call(m.gradient, x)
    check_error(m, "the", given, wanted)
    value = jit(m.f)
    value(x...)
    traced, by_hand = least_seconds(gradient_of, x), least_seconds(m.gradient, x)
    (m.name, text(least_seconds(value, x)), text(least_seconds(m.f, x)), text(traced), text(by_hand),
        string(round(traced / by_hand; sigdigits = 3)), enzyme_time(m, x, wanted),
        text(first_traced), text(first_by_hand))
end
text(seconds) =
    seconds < 1e-3 ? string(round(1e6seconds; sigdigits = 3), " µs") :
    seconds < 1 ? string(round(1e3seconds; sigdigits = 3), " ms") :
    string(round(seconds; sigdigits = 3), " s")

const HEAD = ("model", "value", "plain Julia", "gradient", "by hand", "ratio", "Enzyme.jl",
    "first gradient", "by hand")
function main(names)
    println(Dates.format(now(), "yyyy-mm-dd"), ", ", strip(Sys.cpu_info()[1].model), ", Julia ",
        VERSION, ", one thread")
    LinearAlgebra.BLAS.set_num_threads(1)
    print_row(HEAD)
    print_row(map(_ -> "---", HEAD))
    for m in MODELS
        isempty(names) || any(n -> occursin(n, m.name), names) || continue
        print_row(row(m))
    end
end
print_row(cells) = println("| ", join(cells, " | "), " |")

main(ARGS)

# Writes docs/number_math.md: how exact and how fast the number functions are on this machine.
#
#     julia benchmarks/number_math.jl [arguments a function, 20000]

using Dates
push!(LOAD_PATH, joinpath(@__DIR__, "..", "julia"))
include(joinpath(@__DIR__, "..", "julia", "test", "support", "ulps.jl"))

const LENGTH, REPEATS = 4096, 200         # in the first-level cache; the best of so many runs

function loop!(f, y::Ptr{T}, x::Ptr{T}, n) where {T}
    @simd ivdep for i in 1:n
        unsafe_store!(y, f(unsafe_load(x, i)), i)
    end
end

"ns an element, on one core."
function nanoseconds(f, x::Vector{T}) where {T}
    y, best = similar(x), typemax(UInt64)
    GC.@preserve x y for _ in 1:REPEATS
        start = time_ns()
        loop!(f, pointer(y), pointer(x), length(x))
        best = min(best, time_ns() - start)
    end
    best / length(x)
end

ordinary(name, T) = T[(name === :acosh ? 1 : 0) + 0.9 * k / LENGTH for k in 1:LENGTH]
one_operand(f, arity) = arity == 1 ? f : (@inline g(x) = f(x, x + one(x)); g)
base_function(name, reference) = occursin("exact_", string(reference)) ? nothing : reference

places(x) = join((string(v) for v in x), ", ")
fixed(x) = (s = string(round(x; digits = 2)); s * "0"^(2 - (length(s) - findlast('.', s))))

function row((name, reference, _, arity, single, double), T, n)
    f = getfield(NM, name)
    error, place = worst(name, T, n)
    time_of(g) = fixed(nanoseconds(one_operand(g, arity), ordinary(name, T)))
    near, base = NM.near(f, T), base_function(name, reference)
    cells = Any[name, T, fixed(error), T === Float32 ? single : double, places(place),
        time_of(something(near, (f,))[1]), near === nothing ? "" :
                                           time_of(f), base === nothing ? "" : time_of(base)]
    "| " * join(cells, " | ") * " |"
end

@inline both(x) = NM.sin_near(x) + NM.cos_near(x)

function main(n)
    path = joinpath(@__DIR__, "..", "docs", "number_math.md")
    rows = [row(f, T, n) for f in FUNCTIONS for T in (Float32, Float64)]
    together = [fixed(nanoseconds(both, ordinary(:sin, T))) for T in (Float32, Float64)]
    limits = [Int(NM.near_limit(T)) for T in (Float32, Float64)]
    write(
        path,
        """
# Accuracy and speed of number functions

`JaxprAD.NumberMath` (julia/src/math), whose functions native kernels are made of.

- Worst error: in units in the last place, against MPFR, of $n arguments of all exponents, $n where most happens, and special ones.
  A test holds each function to its bound.
- ns: an element's time on one core in a vector loop over $LENGTH of them between 0 and 0.9 (acosh: 1 and 1.9), the best of $REPEATS
  runs. sin, cos and tan have a form for |x| ≤ $(limits[1]) (f32) or $(limits[2]) (f64), and one for all numbers; sin and cos of
  one argument together take $(together[1]) ns (f32) or $(together[2]) ns (f64).

$(Dates.today()), $(Sys.cpu_info()[1].model), Julia $VERSION, `julia benchmarks/number_math.jl`

| function | type | worst error | bound | at | ns | ns, all numbers | ns, Julia's own |
|---|---|---|---|---|---|---|---|
$(join(rows, "\n"))
"""
    )
end
main(isempty(ARGS) ? 20_000 : parse(Int, ARGS[1]))

# What wrote the files in `v1` that begin with `julia`: they are of the first version, and stay as
# they are. Run with a folder as argument, it writes such files.

push!(LOAD_PATH, joinpath(@__DIR__, "..", "..", "julia"))
using JaxprAD

const TABLE = reshape(sin.(1:120), 12, 10)

struct Oscillator{T}
    rate::T
    damping::T
end

function energy(o, x, n)
    y = copy(x)
    for _ in 1:n
        y = y .+ 0.1 .* (o.rate .* reverse(y) .- o.damping .* y .^ 3)
    end
    z = TABLE * y
    total, path = scan((s, v) -> (s + sin(v) * s / 2, s), 1.0, z)
    (energy = sum(abs2, z) + total, path = path, note = nothing, steps = n)
end

"Bits of all kinds: NaNs with payloads, infinities, -0.0, denormals; in Bools 0 and 1."
function patterned(T)
    k = 0:77*sizeof(T)-1
    stored = T === Bool ? UInt8.(k .% 3 .== 0) : UInt8.(k .* 37 .% 256)
    copy(reshape(reinterpret(T, stored), 11, 7))
end

const DTYPES = [T for (_, T) in JaxprAD.DTYPES]
const PATTERNS = map(patterned, DTYPES)
dtypes() = map(T -> JaxprAD.traced(PATTERNS[findfirst(==(T), DTYPES)]), Tuple(DTYPES))

programs() = [
    "julia-energy" => trace(energy, Oscillator(1.5, 0.25), collect(range(-1, 1; length = 10)), 3),
    "julia-dtypes" => trace(dtypes),
    "julia-tree" => trace(d -> (d["b"], [d["a"][1], (c = d["a"][2],)]),
        Dict("b" => [1.0, 2.0], "a" => (3.0, [4.0 5.0; 6.0 7.0]))),
]

if abspath(PROGRAM_FILE) == @__FILE__
    for (name, traced) in programs()
        save(joinpath(ARGS[1], "$name.pybridge"), traced)
    end
end

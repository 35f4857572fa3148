# What wrote the files in `v2` that begin with `julia`: they are of the second version, and stay as
# they are. Run with a folder as argument, it writes such files.

include("write_v1.jl")

if abspath(PROGRAM_FILE) == @__FILE__
    o, x = Oscillator(1.5, 0.25), collect(range(-1, 1; length = 10))
    for (name, traced) in [
        "julia-energy" => trace(energy, o, x, 3),
        "julia-slope" => trace((o, x) -> gradient(o -> energy(o, x, 3).energy, o), o, x),
    ]
        save(joinpath(ARGS[1], "$name.pybridge"), traced)
    end
end

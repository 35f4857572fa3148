# The examples in the docstrings.

include("../support/tracing.jl")

"""
The examples of a docstring, in `julia>` prompts: pairs of code and the value that it is said to
give."""
function examples(text)
    found = Pair{String,String}[]
    blocks = split(text, r"^ *julia> "m)[2:end]
    for block in blocks
        lines = split(rstrip(first(split(block, "\n\n"))), '\n')
        push!(found, lines[1] => strip(join(lines[2:end], '\n')))
    end
    found
end

const DOCUMENTED = [:trace, :select, :cond, :while_loop, :scan, :jvp, :vjp, :linearize,
    :linear_transpose, :gradient, :jacobian, :hessian, :hvp, :vmap, :jit, :custom_jvp,
    :custom_vjp, :save, :load, :check_derivatives]

same_value(a::Tuple, b::Tuple) = length(a) == length(b) && all(map(same_value, a, b))
same_value(a, b) = a ≈ b
const FOLDERS = [joinpath(@__DIR__, "..", "..", "src", layer) for layer in ("tracing", "archive",
    "testing")]
const SOURCES = [joinpath(folder, file) for folder in FOLDERS for file in readdir(folder)]
tested = Ref(0)
const DOCSTRING = r"\"\"\"\n(.*?)\"\"\"\n"s
for file in SOURCES, m in eachmatch(DOCSTRING, read(file, String))
    apart = Module()
    Core.eval(apart, :(using JaxprAD))
    for (code, value) in examples(m[1])
        result = Core.eval(apart, Meta.parse(code))
        endswith(code, ";") && continue
        @test (code; same_value(result, Core.eval(apart, Meta.parse(value))))
        tested[] += 1
    end
end
@test tested[] >= 14
@test all(n -> n === :linearize || n in names(JaxprAD) || n === :cond, DOCUMENTED)

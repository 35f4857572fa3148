# All tests, those of the files named (`julia test/runtests.jl rules/elementwise`), or every n-th file from the k-th on (`--part k/n`).

push!(LOAD_PATH, joinpath(@__DIR__, ".."))
include("harness.jl")

const FILES = ["harness_test", "codegen/harness_test", "codegen/kernels", "codegen/products", "codegen/hoist", "codegen/in_place", "codegen/plain", "codegen/linked", "codegen/derived", "codegen/nests", "codegen/generators", "codegen/assemble", "functions/trees", "functions/calls", "math/accuracy", "math/native", "rules/elementwise", "rules/shape", "rules/slicing", "rules/gather", "rules/scatter",
               "rules/reductions", "rules/cumulative", "rules/bitcast", "rules/sorting", "rules/dot", "rules/convolution", "rules/reduce_window", "rules/triangular_solve", "rules/cholesky",
               "rules/eigh", "rules/qr", "rules/svd", "rules/lu", "rules/eig", "rules/reflections", "rules/tridiagonal_solve", "rules/linear_solve", "rules/threefry", "rules/fourier", "rules/generators", "rules/remat", "rules/custom",
               "rules/cond", "rules/scan", "rules/while", "transforms/partial_eval", "transforms/accumulate", "transforms/roll", "transforms/recompute", "transforms/min_cut", "transforms/optimize", "dims", "text", "serve", "ffi/handler", "ffi/heap", "ffi/pages", "ffi/pool"]

# Each file is a module of its own, which has what harness.jl defines and imports.
const SHARED = [n for n in names(Main; all = true, imported = true) if isdefined(Main, n) && !startswith(string(n), '#') && !(n in names(Core)) && n !== :Main]

function include_apart(file)
    apart = Module(Symbol(replace(file, '/' => '_')))
    Core.eval(apart, :(using JaxprAD, Test, Random))
    Core.eval(apart, :(include(path) = Base.include($apart, path)))
    for n in SHARED
        n in (:eval, :include, :JaxprAD, :Test, :Random) || Core.eval(apart, :(import Main: $n))
    end
    Base.include(apart, joinpath(@__DIR__, "$file.jl"))
end

function chosen(arguments)
    isempty(arguments) && return FILES
    arguments[1] == "--part" || return map(f -> replace(f, r"\.jl$" => ""), arguments)
    k, n = parse.(Int, split(arguments[2], '/'))
    FILES[k:n:end]
end

@testset "JaxprAD" begin
    for file in chosen(ARGS)
        @testset "$file" begin
            include_apart(file)
        end
    end
end

# All tests, those of the files named (`julia test/runtests.jl rules/elementwise`), or one of two
# halves: `--code`, which test what Julia's optimiser makes of kernels, and `--others`, for which
# `-O1` will do, which halves what Julia takes to compile. One process for each: several would
# compile the same methods again.

push!(LOAD_PATH, joinpath(@__DIR__, ".."))
include("support/harness.jl")

"""
All files of tests, as paths without `.jl`: those of the folders, which are laid out as the sources
are. In `support` are what tests share, and the tests of that."""
function test_files()
    found = String[]
    for (folder, _, files) in walkdir(@__DIR__), file in files
        path = replace(relpath(joinpath(folder, file), @__DIR__), '\\' => '/')
        endswith(path, ".jl") && path != "runtests.jl" &&
            (!startswith(path, "support/") || endswith(path, "_test.jl")) &&
            push!(found, path[1:end-3])
    end
    sort!(found)
end

# Each file is a module of its own, which has what harness.jl defines and imports.
const SHARED = [
    n for n in names(Main; all = true, imported = true)
    if isdefined(Main, n) && !startswith(string(n), '#') && !(n in names(Core)) &&
    n !== :Main
]

function include_apart(file)
    apart = Module(Symbol(replace(file, '/' => '_')))
    Core.eval(apart, :(using JaxprAD, Test, Random))
    Core.eval(apart, :(include(path) = Base.include($apart, path)))
    for n in SHARED
        n in (:eval, :include, :JaxprAD, :Test, :Random) || Core.eval(apart, :(using Main: $n))
    end
    Base.include(apart, joinpath(@__DIR__, "$file.jl"))
end

"Whether a file tests what Julia's optimiser makes of kernels: what they call, how long they take."
tests_code(file) =
    occursin(r"^(codegen|ffi|math)/", file) ||
    occursin(r"heap_free|least_seconds", read(joinpath(@__DIR__, "$file.jl"), String))

chosen(arguments) =
    isempty(arguments) ? test_files() :
    arguments == ["--code"] ? filter(tests_code, test_files()) :
    arguments == ["--others"] ? filter(!tests_code, test_files()) :
    map(f -> replace(f, r"\.jl$" => ""), arguments)

function run_tests(files)
    @testset "JaxprAD" begin
        for file in files
            @testset "$file" begin
                recorded(() -> include_apart(file), get(ENV, "PYBRIDGE_TEST_TIMES", ""), file)
            end
        end
    end
end

try
    run_tests(chosen(ARGS))
catch e
    # What failed is said once more, below the table, since of a long log only the end may be kept.
    e isa Test.TestSetException && foreach(failure -> println('\n', failure), e.errors_and_fails)
    rethrow()
end

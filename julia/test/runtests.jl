# All tests, those of the files named (`julia test/runtests.jl rules/elementwise`), or those that no
# other process has begun of several that share an empty folder (`--share FOLDER`). Some may
# be started with `-O1`, which halves what Julia takes to compile: they leave out what tests code.

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

"Whether no other process has begun with the file: making a folder succeeds in one of them."
function claimed(file, folder)
    claim = joinpath(folder, replace(file, '/' => '_'))
    try
        mkdir(claim)
        true
    catch
        isdir(claim) || rethrow()
        false
    end
end

"Whether a file tests what Julia's optimiser makes of kernels: what they call, how long they take."
tests_code(file) =
    occursin(r"^(codegen|ffi|math)/", file) ||
    occursin(r"heap_free|least_seconds", read(joinpath(@__DIR__, "$file.jl"), String))

function chosen(arguments)
    isempty(arguments) && return test_files()
    arguments[1] == "--share" || return map(f -> replace(f, r"\.jl$" => ""), arguments)
    files = test_files()
    optimises = Base.JLOptions().opt_level >= 2
    shared = vcat(optimises ? filter(tests_code, files) : String[], filter(!tests_code, files))
    Iterators.filter(file -> claimed(file, arguments[2]), shared)
end

@testset "JaxprAD" begin
    for file in chosen(ARGS)
        @testset "$file" begin
            recorded(() -> include_apart(file), get(ENV, "PYBRIDGE_TEST_TIMES", ""), file)
        end
    end
end

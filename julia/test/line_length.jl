# Lines of Julia have at most 100 columns. JuliaFormatter breaks code (.JuliaFormatter.toml), but no
# comments and no strings.

const LONGEST_LINE = 100

"A row of a Markdown table cannot be broken: one begins so in a docstring, the other in a comment."
is_table_row(line) = startswith(line, "| ") || startswith(line, "# | ")

"The lines that are too long, as `path:line`."
function too_long(folder)
    found = String[]
    for (path, _, files) in walkdir(folder), file in files
        endswith(file, ".jl") || continue
        for (k, line) in enumerate(eachline(joinpath(path, file)))
            length(line) <= LONGEST_LINE || is_table_row(line) ||
                push!(found, "$(relpath(joinpath(path, file), folder)):$k")
        end
    end
    found
end

@testset "no line is longer than $LONGEST_LINE columns" begin
    @test too_long(joinpath(@__DIR__, "..")) == []
end

@testset "a line that is too long is found" begin
    mktempdir() do folder
        write(joinpath(folder, "f.jl"), "x\n", "∂"^100, "\n", "∂"^101, "\n| ", "x"^100, "\n")
        @test too_long(folder) == ["f.jl:3"]
    end
end

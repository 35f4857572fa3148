# `julia run.jl ROW.jl FOLDER ROUNDS`: a derivative written by hand, on the arrays 0.npy, 1.npy, ...
# of a folder.
#
# A row's file has `prepare(arrays...)`, which returns a function of nothing that computes the
# derivative, and the arrays into which it writes. Those are written to `results` as bytes, one
# after the other. Prints the median seconds of a call, over rounds of calls that last at least a
# millisecond.

using Statistics

include("vectors.jl")
include(ARGS[1])

"Julia's arrays have the first axis last in memory: axes come in reverse, and bytes as they are."
function npy(path)
    bytes = read(path)
    header = 10 + reinterpret(UInt16, bytes[9:10])[1]
    text = String(bytes[11:header])
    occursin("'descr': '<f8'", text) && occursin("'fortran_order': False", text) ||
        error("$path has no float64 in C order: $text")
    sizes = match(r"'shape': \(([\d, ]*)\)", text)[1]
    shape = [parse(Int, s.match) for s in eachmatch(r"\d+", sizes)]
    isempty(shape) && return reinterpret(Float64, bytes[header+1:end])[1]
    copy(reshape(reinterpret(Float64, bytes[header+1:end]), reverse(shape)...))
end

function repeated(run!::F, count) where {F}
    start = time_ns()
    for _ in 1:count
        run!()
    end
    (time_ns() - start) / 1e9 / count
end

function median_seconds(run!, rounds)
    repeated(run!, 1)
    once = repeated(run!, 1)
    allocated(run!)
    bytes = allocated(run!)
    bytes == 0 || error("the derivative allocates $bytes bytes")
    count = max(1, round(Int, 1e-3 / max(once, 1e-7)))
    median([repeated(run!, count) for _ in 1:rounds])
end

allocated(run!::F) where {F} = @allocated run!()

function main(row, folder, rounds)
    count = length(filter(endswith(".npy"), readdir(folder)))
    run!, results = prepare((npy(joinpath(folder, "$(k - 1).npy")) for k in 1:count)...)
    run!()
    open(file -> foreach(x -> write(file, x), results), joinpath(folder, "results"), "w")
    println(median_seconds(run!, parse(Int, rounds)))
end

main(ARGS...)

# How long each test file takes, and how much of that goes to kernels.

"Seconds in `counted` since the last `recorded` file began."
const KERNEL_SECONDS = Ref(0.0)

"Runs `f` and counts its time as that of compiling kernels or reading their code."
function counted(f)
    start = time()
    try
        f()
    finally
        KERNEL_SECONDS[] += time() - start
    end
end

"""
Runs `f`, and appends a line to the records of this process in the folder: the file, its seconds and
those that kernels took. Nothing is recorded where the folder has no name."""
function recorded(f, folder, file)
    isempty(folder) && return f()
    KERNEL_SECONDS[], start = 0.0, time()
    try
        f()
    finally
        mkpath(folder)
        open(joinpath(folder, "julia-$(getpid()).tsv"), "a") do io
            kernels = "Julia: kernels=$(KERNEL_SECONDS[])"
            println(io, join([file, string(time() - start), kernels], '\t'))
        end
    end
end

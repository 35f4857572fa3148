# Run by an old Julia that writes a system image: JaxprAD loaded, and compiled for what the workload
# and the list of statements use.
#
#     julia -J <base image> --output-o image.o build.jl PACKAGE_FOLDER STATEMENTS

Base.reinit_stdio()
@eval Sys BINDIR = ccall(:jl_get_julia_bindir, Any, ())::String
Base.init_depot_path()
Base.init_load_path()
pushfirst!(LOAD_PATH, ARGS[1])
using JaxprAD
JaxprAD.run_workload()
for statement in eachline(ARGS[2])
    # A statement may name what only the process that recorded it had.
    try
        Base.include_string(Main, statement)
    catch
    end
end
# Whoever starts from this image has paths of their own.
empty!(LOAD_PATH)
empty!(DEPOT_PATH)

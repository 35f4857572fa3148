# Run by an old Julia that writes a system image: JaxprAD loaded, and compiled for what the
# workloads use.
#
#     julia -J <base image> --output-o image.o build.jl PACKAGE_FOLDER

Base.reinit_stdio()
@eval Sys BINDIR = ccall(:jl_get_julia_bindir, Any, ())::String
Base.init_depot_path()
Base.init_load_path()
# Julia initialises no module of the base image here, and tracing looks at the generator. One with a
# seed of the system's would leave an open file in the image; a process that starts drops this one.
let random = Base.require(Base.PkgId(Base.UUID("9a3f8284-a2c9-5f02-9a11-845980a1fd5c"), "Random"))
    isdefined(random, :THREAD_RNGs) &&
        push!(empty!(random.THREAD_RNGs), random.MersenneTwister(1))
end
pushfirst!(LOAD_PATH, ARGS[1])
using JaxprAD
JaxprAD.run_workload(JaxprAD.WORKLOAD, JaxprAD.MODELS)
include("tracing.jl")
TracingWorkload.run()
# Processes that start from this image have other paths.
empty!(LOAD_PATH)
empty!(DEPOT_PATH)

# Kernels by way of a file, as a process without Julia has them: written, linked,
# loaded, the table filled.

using Libdl

"The system's linker, or nothing: without one there are no kernels in files."
linker() =
    (found = filter(!isnothing, map(Sys.which, ("ld.lld", "ld", "cc")));
    isempty(found) ? nothing : first(found))

"The Program's kernel in a shared library, its table filled by what this process has."
function file_kernel(p::Program)
    mktempdir() do folder
        object, library = joinpath(folder, "kernel.o"), joinpath(folder, "kernel.so")
        file, buffers, workspace = JaxprAD.write_kernel(p, object)
        run_command(`$(linker()) -shared -o $library $object`)
        loaded = dlopen(library)
        table = Ptr{Ptr{Cvoid}}(dlsym(loaded, JaxprAD.TABLE))
        for (k, place) in enumerate(file.places)
            unsafe_store!(table, pointer_for(Val(place.kind), place.name, loaded), k)
        end
        JaxprAD.Kernel(dlsym(loaded, file.symbols[2]), workspace, :()), buffers
    end
end
run_command(command) = Base.run(command)

pointer_for(::Union{Val{:function},Val{:data}}, name, library) = dlsym(library, name)
pointer_for(::Val{:constant}, name, library) = Ptr{Cvoid}(pointer(JaxprAD.CONSTANTS[name]))
pointer_for(::Val{:routine}, name, library) =
    first(p for (p, symbol) in JaxprAD.BLAS_SYMBOLS if symbol == name)
# Of the host, threads alone: the tests call the kernel itself, not its handler.
pointer_for(::Val{:host}, name, library) =
    name == "host_parallel_for" ?
    @cfunction(JaxprAD.parallel_for, Cvoid,
        (Ptr{Cvoid}, Int, Ptr{Cvoid}, Ptr{Cvoid})) : C_NULL
pointer_for(::Val{:descriptor}, name, library) = C_NULL

# Kernels by way of a file, as a process without Julia has them: written, linked,
# loaded, the table filled.

using Libdl

"Where tests write the files that must last as long as the process."
const FOLDER = mktempdir()

"""
The Programs that the image is compiled with: in this checkout, while an image may have been made of
another with the same sources."""
const WORKLOAD_PROGRAMS =
    JaxprAD.parse_programs(read(joinpath(@__DIR__, "..", "..", "image", "workload.txt"), String))

inputs_for(r, p) = Any[random_array(r, dtype(v), reverse(Int.(JaxprAD.shape(v)))) for v in p.inputs]
random_array(r, T, size) =
    T[isinexact(T) ? randn(r) : rand(r, 0:1) for _ in CartesianIndices(Tuple(size))] |> asarray

"The derivative of sin(… sin(a) + a …) + a, so many times."
const SPIRAL_GRADIENT = "(%0: f64[], %1: i64[]) {
  %2: i64[], %3: f64[], %4: f64[], %5: f64[] = while_passes %1 %0 0:i64 %0 0.0:f64 1.0:f64 {
    cond_consts=1, consts=1, carry=[2, 2], cond=(%0: i64[], %1: i64[], %2: f64[]) {
      %3: bool[] = lt %1 %0 return %3
    }, passes=[(%0: f64[], %1: i64[], %2: f64[]) {
      %3: i64[] = add %1 1:i64 %4: f64[] = sin %2 %5: f64[] = cos %2 %6: f64[] = add %4 %0
      return %3 %6 %5
    }, (%0: f64[], %1: f64[], %2: f64[], %3: f64[]) {
      %4: f64[] = mul %2 %3 %5: f64[] = add %1 %2 return %5 %4
    }]} %6: f64[] = add %4 %5 return %6 }"

"A Program whose kernel is cut into chunks for threads."
const ON_THREADS = "(%0: f64[300000]) { %1: f64[300000] = sin %0
  %2: f64[] = reduce_sum %1 {axes=[0]} return %1 %2 }"

"The system's linker, or nothing: without one there are no kernels in files."
linker() =
    (found = filter(!isnothing, map(Sys.which, ("ld.lld", "ld", "cc")));
    isempty(found) ? nothing : first(found))

"The Program's kernel in a shared library, its table filled by what this process has."
function file_kernel(p::Program)
    mktempdir() do folder
        object, library = joinpath(folder, "kernel.o"), joinpath(folder, "kernel.so")
        file, buffers, workspace = JaxprAD.write_kernel(p, object)
        routines = [
            JaxprAD.write_routine(joinpath(folder, "routine_$k.o"), symbol)
            for (k, symbol) in enumerate(file.routines)
        ]
        run_command(`$(linker()) -shared -o $library $(file.parts) $routines`)
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
        (Ptr{Cvoid}, Int, Ptr{Cvoid}, Ptr{Cvoid}, Int)) : C_NULL
pointer_for(::Val{:descriptor}, name, library) = C_NULL

"""
Programs with more sines and their like in a row than are vectors for arguments of any extent; of
two dtypes, too, for which these functions have one name. With the types of the arguments."""
const FAR_FUNCTIONS = (
    ("f64", "(%0: f64[37], %1: f64[37]) { %2: f64[37] = sin %0 %3: f64[37] = cos %1
      %4: f64[37] = tan %0 %5: f64[37] = mul %2 %3 %6: f64[37] = add %4 %5 return %6 }",
        (Float64, Float64)),
    ("f32", "(%0: f32[37], %1: f32[37]) { %2: f32[37] = sin %0 %3: f32[37] = cos %1
      %4: f32[37] = sin %1 %5: f32[37] = mul %2 %3 %6: f32[37] = add %4 %5 return %6 }",
        (Float32, Float32)),
    ("f32 and f64", "(%0: f32[37], %1: f64[37]) { %2: f32[37] = sin %0 %3: f64[37] = sin %1
      %4: f32[37] = cos %0 %5: f64[37] = convert_element_type %2 {dtype=f64}
      %6: f64[37] = mul %5 %3 return %4 %6 }", (Float32, Float64)),
    ("c64", "(%0: c64[37], %1: c64[37]) { %2: c64[37] = exp %0 %3: c64[37] = exp %1
      %4: c64[37] = sub %2 %3 %5: c64[37] = exp %4 return %2 %3 %5 }",
        (ComplexF32, ComplexF32)),
)

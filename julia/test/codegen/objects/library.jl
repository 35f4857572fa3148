# Functions of C in libraries: what the kernel gives in memory, called with nothing but pointers.

using Libdl

"The functions of C of a Program in a library that is linked to BLAS alone, and loaded."
function library_of(p::Program; name = "model_value", processor = JaxprAD.this_processor())
    object, library = tempname(FOLDER) * ".o", tempname(FOLDER) * ".so"
    f, file = JaxprAD.write_library_object(p, object, name, processor)
    blas = any(place -> place.kind === :routine, file.places) ? [JaxprAD.blas_library()] : String[]
    Base.run(`$(linker()) -shared -o $library $object $blas`)
    f, dlopen(library)
end

"A call of a function of C by pointers alone."
call_c(f::Ptr{Cvoid}, pointers) =
    @eval ccall($f, Cint, ($((Ptr{Cvoid} for _ in pointers)...),), $(pointers...))

function c_results(p::Program, x; in_workspace = false, misaligned = false)
    f, library = library_of(p)
    y = Any[JaxprAD.uninitialized(aval(a)) for a in p.outputs]
    arrays = vcat(x, y)
    memory = [zeros(UInt8, sizeof(a) + 64) for a in arrays]
    workspace = zeros(UInt8, f.workspace + 64)
    GC.@preserve memory workspace begin
        starts = Ptr{UInt8}[pointer(m) + (misaligned ? sizeof(eltype(a)) : 0)
                            for (m, a) in zip(memory, arrays)]
        for (s, a) in zip(starts, x)
            unsafe_copyto!(s, Ptr{UInt8}(pointer(a)), sizeof(a))
        end
        symbol = in_workspace ? "model_value_in" : "model_value"
        more = in_workspace ? [pointer(workspace)] : []
        @test call_c(dlsym(library, symbol), Ptr{Cvoid}.([starts; more])) == 0
        for (s, a) in zip(starts[length(x)+1:end], y)
            unsafe_copyto!(Ptr{UInt8}(pointer(a)), s, sizeof(a))
        end
    end
    y
end

function same_in_c(p::Program, x; options...)
    y, z = c_results(p, x; options...), JaxprAD.run(JaxprAD.compile(p), p, deepcopy(x))
    all(map((a, b) -> close(a, b, native_tolerance(p)), y, z))
end
same_in_c(text::AbstractString, x...; options...) =
    same_in_c(program(text), collect(Any, map(asarray, x)); options...)

if linker() === nothing
    @info "there is no linker here: libraries are not tested"
else
    r = seeded("libraries")

    @testset "$(p.name), and its gradient" for p in WORKLOAD_PROGRAMS
        for q in (p, JaxprAD.gradient_programs(p)...)
            x = inputs_for(r, q)
            @test same_in_c(q, x)
            @test same_in_c(q, x; in_workspace = true, misaligned = true)
        end
    end

    @testset "tables, chirps and huge arguments" begin
        @test same_in_c("(%0: c128[101]) { %1: c128[101] = fft %0 {fft_type=fft,
          fft_lengths=[101]} return %1 }", randn(r, ComplexF64, 101))
        @test same_in_c("(%0: f64[50]) { %1: f64[50] = mul 1.0e200:f64 %0
          %2: f64[50] = sin %1 return %2 }", randn(r, 50))
    end

    @testset "a routine of LAPACK" begin
        a = randn(r, 12, 12)
        @test same_in_c("(%0: f64[12,12]) {
          %1: f64[12,12] = cholesky %0 return %1 }", a * a' + 12 * one(a))
    end

    @testset "constants go with the library" begin
        p = program("(%0: f64[3]) { %1: f64[2,3] = constant {ref=\"large\"}
          %2: f64[2,3] = broadcast_in_dim %0 {shape=[2, 3], dims=[1]}
          %3: f64[2,3] = mul %1 %2 return %3 }")
        x, constant = Any[randn(r, 3)], randn(r, 3, 2)
        JaxprAD.CONSTANTS["large"] = copy(constant)
        y = c_results(p, x)
        empty!(JaxprAD.CONSTANTS)
        @test first(y) == constant .* x[1]
    end

    @testset "a loop that keeps what its trips leave" begin
        @test same_in_c(SPIRAL_GRADIENT, 0.3, 700)
    end

    @testset "what threads share in a kernel runs in the caller's" begin
        @test same_in_c(ON_THREADS, randn(r, 300000))
    end

    @testset "half precision" begin
        @test same_in_c("(%0: f16[40]) { %1: f32[40] = convert_element_type %0 {dtype=f32}
          %2: f32[40] = exp %1 %3: f16[40] = convert_element_type %2 {dtype=f16} return %3 }",
            Float16.(randn(r, 40)))
        @test same_in_c("(%0: f64[40]) { %1: f16[40] = convert_element_type %0 {dtype=f16}
          return %1 }", randn(r, 40))
        @test same_in_c("(%0: bf16[40]) { %1: bf16[40] = sin %0 return %1 }",
            JaxprAD.BFloat16.(randn(r, Float32, 40)))
    end

    @testset "nothing to take, nothing to give" begin
        @test same_in_c("() { return 2.5:f64 }")
        @test same_in_c("(%0: f64[0,3]) { return %0 }", zeros(0, 3))
        @test same_in_c("(%0: f64[]) { return }", fill(1.0))
    end

    Sys.ARCH === :x86_64 && @testset "for another processor" begin
        p = program("(%0: f64[900]) { %1: f64[900] = sin %0 %2: f64[900] = mul %1 %0 return %2 }")
        x, y = randn(r, 900), zeros(900)
        _, library = library_of(p; processor = JaxprAD.Processor("x86-64", ""))
        @test call_c(dlsym(library, :model_value), [pointer(x), pointer(y)]) == 0
        @test y ≈ x .* sin.(x)
    end

    @testset "functions of numbers" begin
        p = program("(%0: f64[], %1: f64[2]) { %2: f64[] = reduce_sum %1 {axes=[0]}
          %3: f64[] = mul %0 %2 return %3 }")
        f, library = library_of(p)
        numbers(x) = ccall(dlsym(library, :model_value_scipy), Float64,
            (Cint, Ptr{Float64}, Ptr{Cvoid}), length(x), x, C_NULL)
        @test numbers([2.0, 3.0, 4.0]) == 14.0
        @test isnan(numbers([2.0, 3.0])) && isnan(numbers(zeros(4)))
        @test dlsym(library, JaxprAD.TABLE; throw_error = false) === nothing
        @test !JaxprAD.isofnumbers(first(library_of(program("(%0: f32[]) { return %0 }"))))
    end
end

# Kernels in files: the same results as in memory, and nothing of this process in them.

"That a kernel from a file gives what the one in memory does."
function same_in_file(p::Program, x)
    y, z = (JaxprAD.run(first(file_kernel(p)), p, deepcopy(x)),
        JaxprAD.run(JaxprAD.compile(p), p, deepcopy(x)))
    all(map((a, b) -> close(a, b, native_tolerance(p)), y, z))
end
same_in_file(text::AbstractString, x...) =
    same_in_file(program(text), collect(Any, map(asarray, x)))

if linker() === nothing
    @info "there is no linker here: kernels in files are not tested"
else
    r = seeded("object files")

    @testset "$(p.name), and its gradient" for p in WORKLOAD_PROGRAMS
        for q in (p, JaxprAD.gradient_programs(p)...)
            @test same_in_file(q, inputs_for(r, q))
        end
    end

    @testset "what is looked up in memory: $name" for (name, text, n) in (
        ("tables of transforms", "(%0: c128[360]) {
          %1: c128[360] = fft %0 {fft_type=fft, fft_lengths=[360]} return %1 }", 360),
        ("chirps", "(%0: c128[101]) { %1: c128[101] = fft %0 {fft_type=fft,
          fft_lengths=[101]} return %1 }", 101),
        ("quadrants of huge arguments", "(%0: f64[50]) { %1: f64[50] = mul 1.0e200:f64 %0
          %2: f64[50] = sin %1 return %2 }", 50))
        p = program(text)
        @test same_in_file(p, inputs_for(r, p))
    end

    @testset "a routine of LAPACK" begin
        a = randn(r, 12, 12)
        @test same_in_file("(%0: f64[12,12]) {
          %1: f64[12,12] = cholesky %0 return %1 }", a * a' + 12 * one(a))
        @test !isempty(JaxprAD.blas_library()) && isfile(JaxprAD.blas_library())
    end

    @testset "functions of one name, called for several types" begin
        sums =
            "%1: i32[30] = convert_element_type %0 {dtype=i32}
       %2: i32[30] = cumsum %1 {axis=0, reverse=false}
       %3: f64[30] = cumsum %0 {axis=0, reverse=false} " *
            "%4: f64[30] = cummax %0 {axis=0, reverse=true}"
        @test same_in_file("(%0: f64[30]) { $sums return %2 %3 %4 }", 9randn(r, 30))
    end

    @testset "functions for arguments of any extent, that are called: $name" for (name, text, Ts) in
                                                                                FAR_FUNCTIONS
        @test same_in_file(text, (randn(r, T, 37) for T in Ts)...)
        @test same_in_file(text, (fill(T(3.0f6), 37) for T in Ts)...)
    end

    @testset "a loop that keeps what its trips leave" begin
        @test same_in_file(SPIRAL_GRADIENT, 0.3, 700)
    end

    @testset "loops on threads" begin
        @test same_in_file(ON_THREADS, randn(r, 300000))
    end

    @testset "what kernels need of their process is in a file of its own" begin
        file = JaxprAD.write_host(tempname(FOLDER))
        @test file.symbols == ["host_parallel_for", "host_handle", "host_shut"]
        @test [p.kind for p in file.places] == [:data, :data, :function] && all(isfile, file.parts)
    end

    @testset "what LLVM knows of the alignment of addresses holds in a file" begin
        # It reads three places of the table at once; they begin at an odd one where the lines of an
        # axis of 3 are transformed first.
        for (n, m) in ((3, 101), (5, 101), (3, 422), (4, 101))
            @test same_in_file(program("(%0: c64[$n,$m]) {
              %1: c64[$n,$m] = fft %0 {fft_type=fft, fft_lengths=[$n, $m]} return %1 }"),
                Any[normal(r, ComplexF32, [n, m])])
        end
    end

    @testset "long code has parts, of which threads write some" begin
        steps = map(1:150) do k
            f = rand(r, ("sin", "tanh", "exp", "cos"))
            "%$(2k-1): f64[7] = mul $(rand(r)):f64 %$(2k-2) %$(2k): f64[7] = $f %$(2k-1)"
        end
        p = program("(%0: f64[7]) { $(join(steps, '\n')) return %300 }")
        @test same_in_file(p, inputs_for(r, p))
        @test length(first(JaxprAD.write_kernel(p, tempname(FOLDER))).parts) > 1
    end

    @testset "the file says what it takes and gives" begin
        file, buffers, workspace = JaxprAD.write_kernel(program("(%0: f32[3], %1: f64[]) {
          %2: f32[3] = neg %0 return %2 }"), tempname(FOLDER))
        @test buffers.operands == 2 && buffers.types == [11, 1, 3, 12, 0, 11, 1, 3] &&
              buffers.bytes == [12] && workspace == 0
        @test [p.kind for p in file.places] == [:host, :descriptor]
    end
end

@testset "an address of this process is refused" begin
    here = pointer_from_objref(Ref(1))
    code = :(reads_here() = $(unsafe_load)($(Ptr{Int}(here))))
    table = JaxprAD.OutsideTable()
    @test_throws JaxprAD.NoObjectFile JaxprAD.outside(code, table)
    @test_throws JaxprAD.NoObjectFile JaxprAD.write_object_file(tempname(FOLDER), Any[code],
        ["reads_here"], table)
    allocates = :(gives_array(n::Int) = length($(zeros)(n)))
    # nor may a kernel in memory do that
    @test_throws JaxprAD.KernelRefused JaxprAD.write_object_file(tempname(FOLDER), Any[allocates],
        ["gives_array"], table)
end

@testset "addresses in place of the names that Julia 1.12 has for them" begin
    text = """
    source_filename = "f"
    @"+Core.Float64#1.jit" = private alias i64, inttoptr (i64 4242 to ptr)
    @"jl_array#2" = private unnamed_addr constant ptr @"+Core.Float64#1.jit"
    @unused = private unnamed_addr constant i64 7
    define ptr @julia_f_1() {
    top:
        #dbg_value(i64 1, !1, !DIExpression(), !2)
      %a = load ptr, ptr @"jl_array#2"
      ret ptr %a
    }"""
    lines = split(JaxprAD.with_addresses(text), '\n')
    @test lines == split(
        """
        source_filename = "f"
        define ptr @julia_f_1() {
        top:
          %a = load ptr, ptr @"jl_array#2"
          ret ptr %a
        }
        @"jl_array#2" = private unnamed_addr constant ptr inttoptr (i64 4242 to ptr)""", '\n')
end

# What the package relies on that Julia does not promise: names that are neither exported nor
# public, fields of the compiler's types, and C functions. On a new Julia this says in seconds what
# is gone, and what it was for. The sources are read: they use nothing of the kind that is not
# listed here. What Python asks of libjulia stands in pybridge/runtime/julia/libjulia.py.

using InteractiveUtils, Libdl, LinearAlgebra, Random, SHA
include("support/names_used.jl")

"Names by what they are for."
const INTERNALS = [
    "what Julia has inferred of a function" => [
        "Base.method_instances", "Base.get_world_counter", "Base.inferencebarrier",
        "Base.return_types", "Core.Builtin", "Core.CodeInfo", "Core.Compiler",
        "Core.Compiler.Argument", "Core.Compiler.Const", "Core.Compiler.intrinsic_nothrow",
        "Core.Compiler.typeinf_ext", "Core.Compiler.widenconst", "Core.IntrinsicFunction",
        "Core.MethodInstance", "Core.PhiNode", "Core.PiNode", "Core.QuoteNode", "Core.SSAValue",
        "Core.SlotNumber", "Core.Typeof", "Core.ifelse", "jl_get_world_counter"],
    "LLVM's text of a function" =>
        ["Base.CodegenParams", "InteractiveUtils._dump_function_llvm", "jl_array_ptr"],
    "LLVM's instructions in kernels" =>
        ["Base.libllvm_version", "Base.llvmcall", "Base.sdiv_int", "Base.srem_int"],
    "modules and functions that are made while the program runs" =>
        ["Base.Experimental.@optlevel", "Base.PkgId", "Base.include", "Base.loaded_modules",
            "Base.require", "Base.root_module", "Core.eval", "jl_generating_output"],
    "what an image of the package keeps" =>
        ["jl_tag_newly_inferred_disable", "jl_tag_newly_inferred_enable"],
    "options and the processor" => ["Base.JLOptions", "jl_cpu_pause", "jl_get_cpu_name"],
    "BLAS" => ["LinearAlgebra.BLAS.libblas", "LinearAlgebra.BLAS.libblastrampoline",
        "LinearAlgebra.BlasFloat", "LinearAlgebra.BlasInt"],
    "methods for traced arrays and numbers" => [
        "Base.Broadcast.AbstractArrayStyle", "Base.Broadcast.Broadcasted",
        "Base.Broadcast.DefaultArrayStyle", "Base.Broadcast.Style", "Base.Broadcast.broadcasted",
        "Base.Broadcast.instantiate", "Base.Broadcast.materialize!", "Base.RefValue",
        "Base.ReshapedArray", "Base.Slice", "Base._cat_t", "Base._reshape_uncolon",
        "Base.add_sum", "Base.dataids", "Base.deepcopy_internal", "Base.literal_pow",
        "Base.maybeview", "Base.method_argnames", "Base.mul_prod", "Base.promote_typejoin",
        "Base.reduced_indices", "Base.size_to_strides", "Base.typed_hcat", "Base.typed_vcat",
        "Base.unwrap_unionall", "LinearAlgebra.norm_sqr"],
    "sizes that do not overflow" => ["Base.add_with_overflow", "Base.mul_with_overflow"],
    "errors as Julia shows them" => ["Base.show_backtrace"],
    "object files, and texts of kernels, by LLVM's C interface" => [
        "LLVMContextCreate", "LLVMContextDispose", "LLVMContextSetOpaquePointers",
        "LLVMCreateMemoryBufferWithMemoryRangeCopy",
        "LLVMCreateTargetMachine", "LLVMDisposeMessage", "LLVMDisposeTargetMachine",
        "LLVMGetDefaultTargetTriple", "LLVMGetFirstFunction", "LLVMGetFirstGlobal",
        "LLVMGetHostCPUFeatures", "LLVMGetLinkage", "LLVMGetNextFunction", "LLVMGetNextGlobal",
        "LLVMGetTargetFromTriple", "LLVMGetValueName2", "LLVMIsDeclaration", "LLVMLinkModules2",
        "LLVMParseIRInContext", "LLVMSetLinkage", "LLVMSetVisibility",
        "LLVMTargetMachineEmitToFile"],
]

"The release that brought a name, where that is after 1.5."
const SINCE = Dict(
    "Base.CodegenParams" => v"1.11-",
    "Base.get_extension" => v"1.9-",
    "InteractiveUtils._dump_function_llvm" => v"1.11-",
    "LLVMContextSetOpaquePointers" => v"1.11-",
    "LinearAlgebra.BLAS.libblastrampoline" => v"1.7-",
    "jl_tag_newly_inferred_disable" => v"1.12-",
    "jl_tag_newly_inferred_enable" => v"1.12-")

"Public or exported from 1.11 on, and the same before."
const PUBLIC_LATER = [
    "Base.@propagate_inbounds", "Base.IdSet", "Base.Iterators.Stateful", "Base.Iterators.peel",
    "Base.Iterators.reverse", "Base.Meta.parse", "Base.OneTo", "Base.UUID", "Base.elsize",
    "Base.front", "Base.get_extension", "Base.has_offset_axes", "Base.identify_package",
    "Base.invokelatest", "Base.locate_package", "Base.moduleroot",
    "Base.require_one_based_indexing", "Base.tail", "Base.to_index", "Base.unsafe_convert",
    "Random.default_rng"]

"Fields of the compiler's types."
const FIELDS = [
    Core.CodeInfo => [:code, :ssavaluetypes], Core.MethodInstance => [:def],
    Core.PhiNode => [:values], Core.PiNode => [:val], Core.SSAValue => [:id],
    Core.SlotNumber => [:id], Core.Compiler.Argument => [:n], Core.Compiler.Const => [:val]]

is_of_c(name) = !occursin('.', name)
"The release from which on a name is gone, which nothing uses then."
const UNTIL = Dict("LLVMContextSetOpaquePointers" => v"1.12-")

expected(name) = get(SINCE, name, v"1.5") <= VERSION < get(UNTIL, name, typemax(VersionNumber))

"Whether this Julia, or the LLVM that it brings, has a function of C's."
function has_function(name)
    startswith(name, "LLVM") &&
        return Libdl.dlsym(JaxprAD.libllvm(), Symbol(name); throw_error = false) !== nothing
    try
        Core.eval(@__MODULE__, :(cglobal($(QuoteNode(Symbol(name)))))) != C_NULL
    catch
        false
    end
end

"What is listed and not there, with what it is for."
gone() = [
    "$name: $purpose" for (purpose, names) in INTERNALS for name in names
    if expected(name) && !(is_of_c(name) ? has_function(name) : has(name))]

const USED = names_used(source_texts(joinpath(@__DIR__, "..", "src")))
const LISTED = reduce(vcat, last.(INTERNALS))

@testset "what is relied on is there" begin
    @test gone() == []
    @test [(T, f) for (T, fields) in FIELDS for f in fields if !hasfield(T, f)] == []
end

@testset "nothing else that Julia does not promise is used" begin
    internal = filter(name -> is_of_c(name) || expected(name) && !is_promised(name), USED)
    @test sort!(setdiff!(collect(internal), LISTED, PUBLIC_LATER)) == []
end

@testset "what is listed is used" begin
    @test setdiff(LISTED, USED) == []
    @test setdiff(PUBLIC_LATER, USED) == []
    @test setdiff(collect(keys(SINCE)), USED) == []
end

@testset "names that are used are found" begin
    text = "using LinearAlgebra: A, B\nf(x) = [Base.g(x.y), @eval Core.Compiler.h]\n" *
           "ccall(:jl_i, Cint, ())"
    @test names_used([text]) ==
          Set(["LinearAlgebra.A", "LinearAlgebra.B", "Base.g", "Core.Compiler.h", "jl_i"])
    @test !has("Base.g") && !has("Base.G.g") && has("Base.Meta.parse")
    @test is_promised("Base.sin") && is_promised("Base.Float64") && !is_promised("Base.add_sum")
    @test has_function("jl_eval_string") && !has_function("jl_i") && !has_function("LLVMJ")
end

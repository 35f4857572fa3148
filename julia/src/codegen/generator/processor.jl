# Processors that code is written for, as LLVM knows them.

"libLLVM, as Julia has loaded it; nothing where it is no library of its own."
function loaded_llvm()
    found = filter(path -> occursin(r"^libLLVM", basename(path)), dllist())
    isempty(found) ? nothing : dlopen(first(found))
end

"A text that LLVM gave, which is freed."
function taken_text(llvm, message::Ptr{UInt8})
    message == C_NULL && return ""
    text = unsafe_string(message)
    ccall(dlsym(llvm, :LLVMDisposeMessage), Cvoid, (Ptr{UInt8},), message)
    text
end

"What code is compiled for: a processor's name and features, in LLVM's words."
struct Processor
    name::String
    features::String
end
this_processor() = Processor(ccall(:jl_get_cpu_name, Ref{String}, ()), this_processors_features())
function this_processors_features()
    llvm = loaded_llvm()
    llvm === nothing ? "" :
    taken_text(llvm, ccall(dlsym(llvm, :LLVMGetHostCPUFeatures), Ptr{UInt8}, ()))
end

"The bytes of its registers for vectors: 64 with AVX-512, which it has by its features or its name."
register_bytes(p::Processor) =
    occursin("+avx512f", p.features) || endswith(p.name, "avx512") || p.name == "x86-64-v4" ?
    64 : 32

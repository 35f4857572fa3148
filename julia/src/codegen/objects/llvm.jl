# Object files from LLVM's text, by the C interface of the libLLVM that Julia has in this process.

"The targets by Sys.ARCH, as libLLVM's functions spell them."
const LLVM_TARGETS = Dict(:x86_64 => "X86", :aarch64 => "AArch64")

const OBJECT_CODE, POSITION_INDEPENDENT, DEFAULT_MODEL, AGGRESSIVE = (Cint(1), Cint(2),
    Cint(0), Cint(3))
const INTERNAL_LINKAGE = Cint(8)

"Why no object file can be made here, or of this kernel."
struct NoObjectFile <: Exception
    reason::String
end
Base.showerror(io::IO, e::NoObjectFile) = print(io, e.reason)

"libLLVM, or why there is none to ask."
function libllvm()
    llvm = loaded_llvm()
    llvm === nothing ? throw(NoObjectFile("this Julia has no libLLVM of its own")) : llvm
end

function read_module(llvm, context, text::String)
    made, message = parsed_module(llvm, context, text)
    made == C_NULL && throw(NoObjectFile("LLVM does not read its own text: $message"))
    made
end

"The modules of these texts as one; functions and data that are not `exported` are its own."
function linked_module(llvm, context, texts, exported)
    whole = read_module(llvm, context, first(texts))
    for text in texts[2:end]
        failed = ccall(dlsym(llvm, :LLVMLinkModules2), Cint, (Ptr{Cvoid}, Ptr{Cvoid}), whole,
            read_module(llvm, context, text))
        failed == 0 || throw(NoObjectFile("LLVM cannot link the kernel's functions"))
    end
    make_internal(llvm, whole, (:LLVMGetFirstFunction, :LLVMGetNextFunction), exported)
    make_internal(llvm, whole, (:LLVMGetFirstGlobal, :LLVMGetNextGlobal), exported)
    whole
end

function make_internal(llvm, whole, (first_of, next_of), exported)
    value = ccall(dlsym(llvm, first_of), Ptr{Cvoid}, (Ptr{Cvoid},), whole)
    while value != C_NULL
        size = Ref{Csize_t}(0)
        name =
            unsafe_string(
                ccall(dlsym(llvm, :LLVMGetValueName2), Ptr{UInt8},
                    (Ptr{Cvoid}, Ref{Csize_t}), value, size)
            )
        isdeclaration = ccall(dlsym(llvm, :LLVMIsDeclaration), Cint, (Ptr{Cvoid},), value) != 0
        isdeclaration || name in exported ||
            ccall(dlsym(llvm, :LLVMSetLinkage), Cvoid, (Ptr{Cvoid}, Cint), value, INTERNAL_LINKAGE)
        value = ccall(dlsym(llvm, next_of), Ptr{Cvoid}, (Ptr{Cvoid},), value)
    end
end

"Code for a processor of this kind, to be loaded anywhere."
function target_machine(llvm, processor::Processor)
    kind = get(LLVM_TARGETS, Sys.ARCH, nothing)
    kind === nothing &&
        throw(NoObjectFile("object files are not made for the processors $(Sys.ARCH)"))
    for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter")
        ccall(dlsym(llvm, Symbol("LLVMInitialize", kind, part)), Cvoid, ())
    end
    triple = taken_text(llvm, ccall(dlsym(llvm, :LLVMGetDefaultTargetTriple), Ptr{UInt8}, ()))
    target, message = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{UInt8}}(C_NULL)
    failed = ccall(dlsym(llvm, :LLVMGetTargetFromTriple), Cint,
        (Cstring, Ref{Ptr{Cvoid}}, Ref{Ptr{UInt8}}), triple, target, message)
    failed == 0 ||
        throw(NoObjectFile("LLVM has no target for this machine: $(taken_text(llvm, message[]))"))
    ccall(dlsym(llvm, :LLVMCreateTargetMachine), Ptr{Cvoid},
        (Ptr{Cvoid}, Cstring, Cstring, Cstring, Cint, Cint, Cint), target[], triple,
        processor.name, processor.features, AGGRESSIVE, POSITION_INDEPENDENT,
        DEFAULT_MODEL)
end

"""
Writes the object file of LLVM modules in text form, of which only the `exported`
names can be seen."""
function write_object(path::String, texts, exported, processor::Processor)
    llvm = libllvm()
    context = ccall(dlsym(llvm, :LLVMContextCreate), Ptr{Cvoid}, ())
    machine = target_machine(llvm, processor)
    try
        whole, message = linked_module(llvm, context, texts, exported), Ref{Ptr{UInt8}}(C_NULL)
        failed = ccall(dlsym(llvm, :LLVMTargetMachineEmitToFile), Cint,
            (Ptr{Cvoid}, Ptr{Cvoid}, Cstring, Cint, Ref{Ptr{UInt8}}), machine, whole, path,
            OBJECT_CODE, message)
        failed == 0 ||
            throw(NoObjectFile("LLVM cannot write $path: $(taken_text(llvm, message[]))"))
    finally
        ccall(dlsym(llvm, :LLVMDisposeTargetMachine), Cvoid, (Ptr{Cvoid},), machine)
        ccall(dlsym(llvm, :LLVMContextDispose), Cvoid, (Ptr{Cvoid},), context)
    end
    path
end

# Object files from LLVM's text, by the C interface of the libLLVM that Julia has in this process.

"The targets by Sys.ARCH, as libLLVM's functions spell them."
const LLVM_TARGETS = Dict(:x86_64 => "X86", :aarch64 => "AArch64")

const OBJECT_CODE, POSITION_INDEPENDENT, DEFAULT_MODEL, AGGRESSIVE = (Cint(1), Cint(2),
    Cint(0), Cint(3))
const INTERNAL_LINKAGE, PRIVATE_LINKAGE, HIDDEN = Cint(8), Cint(9), Cint(1)
const LOCAL_LINKAGES = (INTERNAL_LINKAGE, PRIVATE_LINKAGE)

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

"""
The modules of these texts as one; what is not `exported` is its own, or, of a part of a file, seen
by the other parts."""
function linked_module(llvm, context, texts, exported; ispart = false)
    whole = read_module(llvm, context, first(texts))
    for text in texts[2:end]
        failed = ccall(dlsym(llvm, :LLVMLinkModules2), Cint, (Ptr{Cvoid}, Ptr{Cvoid}), whole,
            read_module(llvm, context, text))
        failed == 0 || throw(NoObjectFile("LLVM cannot link the kernel's functions"))
    end
    for steps in ((:LLVMGetFirstFunction, :LLVMGetNextFunction),
        (:LLVMGetFirstGlobal, :LLVMGetNextGlobal))

        hide(llvm, whole, steps, exported, ispart)
    end
    whole
end

function hide(llvm, whole, (first_of, next_of), exported, ispart)
    value = ccall(dlsym(llvm, first_of), Ptr{Cvoid}, (Ptr{Cvoid},), whole)
    while value != C_NULL
        size = Ref{Csize_t}(0)
        name =
            unsafe_string(
                ccall(dlsym(llvm, :LLVMGetValueName2), Ptr{UInt8},
                    (Ptr{Cvoid}, Ref{Csize_t}), value, size)
            )
        isdeclaration = ccall(dlsym(llvm, :LLVMIsDeclaration), Cint, (Ptr{Cvoid},), value) != 0
        isdeclaration || name in exported || hide(llvm, value, ispart)
        value = ccall(dlsym(llvm, next_of), Ptr{Cvoid}, (Ptr{Cvoid},), value)
    end
end
function hide(llvm, value, ispart)
    islocal = ccall(dlsym(llvm, :LLVMGetLinkage), Cint, (Ptr{Cvoid},), value) in LOCAL_LINKAGES
    ispart && !islocal ?
    ccall(dlsym(llvm, :LLVMSetVisibility), Cvoid, (Ptr{Cvoid}, Cint), value, HIDDEN) :
    ccall(dlsym(llvm, :LLVMSetLinkage), Cvoid, (Ptr{Cvoid}, Cint), value, INTERNAL_LINKAGE)
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
Modules of LLVM's as one, in a context of its own, which becomes the object file `path`. One thread
at a time may work at it. `close` frees its memory."""
struct ObjectModule
    llvm::Ptr{Cvoid}
    path::String
    context::Ptr{Cvoid}
    machine::Ptr{Cvoid}
    whole::Ptr{Cvoid}
end
function ObjectModule(path::String, texts, exported, processor::Processor; ispart = false)
    llvm = libllvm()
    machine = target_machine(llvm, processor)
    context = new_context(llvm)
    try
        whole = linked_module(llvm, context, texts, exported; ispart = ispart)
        return ObjectModule(llvm, path, context, machine, whole)
    catch
        dispose(llvm, context, machine)
        rethrow()
    end
end
Base.close(m::ObjectModule) = dispose(m.llvm, m.context, m.machine)
function dispose(llvm, context, machine)
    ccall(dlsym(llvm, :LLVMDisposeTargetMachine), Cvoid, (Ptr{Cvoid},), machine)
    ccall(dlsym(llvm, :LLVMContextDispose), Cvoid, (Ptr{Cvoid},), context)
end

"Writes the file, and closes the module."
write_object(m::ObjectModule) = written(m) do message
    ccall(EMIT[], Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Cstring, Cint, Ptr{Ptr{UInt8}}), m.machine,
        m.whole, m.path, OBJECT_CODE, message)
end
"The same in a thread of libuv's, while other tasks run."
write_object_aside(m::ObjectModule) = written(m) do message
    @threadcall(EMIT[], Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Cstring, Cint, Ptr{Ptr{UInt8}}), m.machine,
        m.whole, m.path, OBJECT_CODE, message)
end
function written(emitted, m::ObjectModule)
    message = Ref{Ptr{UInt8}}(C_NULL)
    EMIT[] = dlsym(m.llvm, :LLVMTargetMachineEmitToFile)
    try
        failed =
            GC.@preserve message emitted(Base.unsafe_convert(Ptr{Ptr{UInt8}}, message))
        failed == 0 ||
            throw(NoObjectFile("LLVM cannot write $(m.path): $(taken_text(m.llvm, message[]))"))
    finally
        close(m)
    end
    m.path
end
"LLVM's function that makes machine code, where a thread can read it."
const EMIT = Ref{Ptr{Cvoid}}(C_NULL)

# What a compiled function calls, by LLVM's optimised text of it: exact, and takes about half as
# long as compiling the function.

"The module of a text, or null and what LLVM says against it."
function parsed_module(llvm, context, text::String)
    buffer = ccall(dlsym(llvm, :LLVMCreateMemoryBufferWithMemoryRangeCopy), Ptr{Cvoid},
        (Ptr{UInt8}, Csize_t, Cstring), text, sizeof(text), "kernel")
    made, message = Ref{Ptr{Cvoid}}(C_NULL), Ref{Ptr{UInt8}}(C_NULL)
    failed = ccall(dlsym(llvm, :LLVMParseIRInContext), Cint,
        (Ptr{Cvoid}, Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ref{Ptr{UInt8}}), context, buffer, made,
        message)
    failed == 0 ? (made[], "") : (Ptr{Cvoid}(C_NULL), taken_text(llvm, message[]))
end

"""
A context of LLVM's that reads Julia's own text. Julia 1.11 has pointers without types in its
contexts, while its LLVM 16 is told to have them with types in all others."""
function new_context(llvm)
    context = ccall(dlsym(llvm, :LLVMContextCreate), Ptr{Cvoid}, ())
    v"1.11-" <= VERSION < v"1.12-" &&
        ccall(dlsym(llvm, :LLVMContextSetOpaquePointers), Cvoid, (Ptr{Cvoid}, Cint), context, 1)
    context
end

"What LLVM says against a text, or nothing; where there is no libLLVM, nothing either."
function syntax_error(text::String)
    llvm = loaded_llvm()
    llvm === nothing && return ""
    context = new_context(llvm)
    try
        return last(parsed_module(llvm, context, text))
    finally
        ccall(dlsym(llvm, :LLVMContextDispose), Cvoid, (Ptr{Cvoid},), context)
    end
end

# Functions of C that kernels call, which every process has.
const C_FUNCTIONS =
    ["malloc", "free", "realloc", "calloc", "memcpy", "memmove", "memset", "memcmp",
        "sched_yield", "madvise"]

"""
Why no kernel may have code with LLVM's text, or nothing: it calls Julia's runtime, a function that
this process lacks, or it goes on where control may not come."""
function text_refused(text)
    for line in split(text, '\n')
        reason = line_refused(line)
        isempty(reason) || return reason
    end
    ""
end
function line_refused(line)
    optimizes() && startswith(line, UNREACHABLE) && return "it comes where it may not"
    of_c = match(OF_C, line)
    of_c === nothing || return c_refused(of_c[1])
    call = call_in(line)
    call === nothing && return ""
    call[2] === nothing || return address_refused(parse(UInt, call[2]))
    call[1] === nothing ? "" : name_refused(call[1])
end
const UNREACHABLE = r"\s*unreachable"
"Whether LLVM drops branches that are never taken: below -O2 they stay, as `br i1 true`."
optimizes() = Base.JLOptions().opt_level >= 2
call_in(line) =
    startswith(line, "declare ") || !occursin("(", line) ? nothing : match(CALL, line)
const CALL = r"\b(?:call|invoke)\b.*?(?:@\"?([^\"(]+)\"?\(|%\d+\(|inttoptr \(i64 (\d+) to)"

name_refused(name) =
    startswith(name, "llvm.") || julia_name(name) !== nothing ? "" : c_refused(name)
# A function of C is called by what this holds, or, by newer Julias, where this name is.
const OF_C = r"@jlplt_(.+)_\d+_got\b"
c_refused(name) =
    name in C_FUNCTIONS ? "" :
    isruntime(name) ? "it calls Julia's runtime, $name" :
    dlsym(dlopen(""), Symbol(name); throw_error = false) === nothing ?
    "it calls $name, which is nowhere" : ""
isruntime(name) = occursin(r"^i?jl_|^julia\.|^gc_|^j_str_", name)

"Julia's library is where its runtime is; BLAS and code of JaxprAD may be called."
function address_refused(address::UInt)
    info = fill(Ptr{UInt8}(0), 4)     # Dl_info: the file's name first, the symbol's third
    found = ccall(:dladdr, Cint, (Ptr{Cvoid}, Ptr{Cvoid}), Ptr{Cvoid}(address), info) != 0
    file = found && info[1] != C_NULL ? basename(unsafe_string(info[1])) : ""
    occursin("libjulia", file) || return ""
    symbol = info[3] == C_NULL ? "an address of its own" : unsafe_string(info[3])
    "it calls Julia's runtime, $symbol"
end

"""
    compiled_calls(specialization) -> (reason, callees)

Why no kernel may call it (empty if it may), and which functions of Julia's it calls."""
function compiled_calls(s::Specialization)
    text, called = llvm_text(s; dump_module = false), Set{String}()
    reason = text_refused(text)
    isempty(reason) || return reason, Core.MethodInstance[]
    invoked = invoked_methods(s)
    for line in split(text, '\n')
        m = call_in(line)
        name = m === nothing || m[1] === nothing ? nothing : julia_name(m[1])
        name === nothing || push!(called, name)
    end
    "", Core.MethodInstance[m for name in called for m in get(invoked, name, ())]
end

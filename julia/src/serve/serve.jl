# The one entry for other languages: a request and its answer, both text.

"""
    serve(message) -> String

The message's first line is a command with space-separated arguments, the rest its body (usually
Program text). The answer is `ok` and a body, or `error`, the exception's kind, its message, a line
`-----` and the stack trace. Never throws.

With a last argument `optimize` the resulting Programs are optimised. Masks are strings of 0 and 1
after an `m`, one digit an input or result: `m011`.

| command | body | answer |
|---|---|---|
| `normalize` | Programs | the same, type-checked and printed |
| `check` | Programs | nothing, where their types are right |
| `jvp ACTIVE` | a Program | its JVP |
| `linearize ACTIVE` | a Program | mask of the results with a tangent, number of residuals; the known and the linear Program. With an argument `compact`, residuals are few and small: unrolled loops are rolled, factors are multiplied together, large ones that are cheap computed again |
| `transpose LINEAR COTANGENTS` | a Program | its transpose |
| `vjp ACTIVE VALUE` | a Program | its VJP, with the results in front when VALUE is 1 |
| `with_gradient ACTIVE` | a Program with one inexact result, a scalar | its results, and behind them the gradient of that one; optimised. Nothing where it has no derivative by the active inputs |
| `optimize` | a Program | the optimised Program |
| `evaluate IN,… OUT,… REF=ADDRESS,…` | a Program | runs it on row-major buffers, and constants, at these addresses (`-` for none) |
| `compile DIGEST REF=ADDRESS,…` | a Program | its FFI handler's address in native code, and the bytes of workspace; the constants at these addresses are used for ever |
| `object REF=ADDRESS,…` | a path, in a line of its own, and a Program | writes its kernel as an object file; its symbol, the bytes of workspace, what XLA hands to it, a line for each further `part` of the file, for each routine that it `needs` to be linked with, and one for each place of its table (codegen/objects/) |
| `host_object` | a path | writes what such kernels need of their process; a line for each place of its table |
| `routine_object` | a path, in a line of its own, and the symbol of such a routine | writes it as an object file |
| `common_routines` | | the symbols of such routines that are known before a kernel needs them: those of what JaxprAD was compiled for |
| `library_object NAME REF=ADDRESS,… PROCESSOR` | a path, in a line of its own, and a Program | writes functions of C (codegen/objects/library.jl) as an object file; the bytes of workspace, its symbols, the routines of BLAS and LAPACK that it calls, and the processor with its features. PROCESSOR is LLVM's name of one, or `native` |
| `blas` | | the file of the BLAS and LAPACK that kernels call |
| `explain REF=ADDRESS,…` | a Program | the compiler's stages with their times, and its plan, as text for people |
| `rules` | | one line a primitive: name, has JVP rule, has transpose rule, never has a tangent, what its native code is (`own`, `fused`, `inlined` or `none`), the operands without derivative (`-` for none) |
"""
function serve(message::AbstractString)
    CANCEL[] = 0
    head, body = split_line(message)
    command, arguments = Iterators.peel(split(head))
    try
        "ok\n" * answer(Val(Symbol(command)), String(body), String.(collect(arguments)))
    catch e
        e isa InterruptException ? INTERRUPTED : "error\n" * failure_text(e, catch_backtrace())
    end
end

# Nobody reads where a request was when it was interrupted, and the next waits for the answer.
const INTERRUPTED = "error\nInterruptException\nit was interrupted\n-----\n"

answer(::Val{C}, body, arguments) where {C} = throw(ArgumentError("unknown request $C"))

# The one entry for other languages: a request and its answer, both text.

"""
    serve(message) -> String

The message's first line is a command with space-separated arguments, the rest its body (usually Program text).
The answer is `ok` and a body, or `error`, the exception's kind, its message, a line `-----` and the stack trace. Never throws.

With a last argument `optimize` the resulting Programs are optimised. Masks are strings of 0 and 1 after an `m`, one digit an input or result: `m011`.

| command | body | answer |
|---|---|---|
| `normalize` | Programs | the same, type-checked and printed |
| `jvp ACTIVE` | a Program | its JVP |
| `linearize ACTIVE` | a Program | mask of the results with a tangent, number of residuals; the known and the linear Program. With an argument `compact`, residuals are few and small: factors are multiplied together, large ones that are cheap computed again |
| `transpose LINEAR COTANGENTS` | a Program | its transpose |
| `vjp ACTIVE VALUE` | a Program | its VJP, with the results in front when VALUE is 1 |
| `optimize` | a Program | the optimised Program |
| `evaluate IN,… OUT,… REF=ADDRESS,…` | a Program | runs it on row-major buffers, and constants, at these addresses (`-` for none) |
| `compile DIGEST REF=ADDRESS,…` | a Program | its FFI handler's address in native code, and the bytes of workspace; the constants at these addresses are used for ever |
| `rules` | | one line a primitive: name, has JVP rule, has transpose rule |
"""
function serve(message::AbstractString)
    CANCEL[] = 0
    head, body = split_line(message)
    command, arguments = Iterators.peel(split(head))
    try
        "ok\n" * answer(Val(Symbol(command)), String(body), String.(collect(arguments)))
    catch e
        failure(e, catch_backtrace())
    end
end

function split_line(text)
    newline = findfirst(==('\n'), text)
    newline === nothing ? (text, "") : (SubString(text, 1, prevind(text, newline)), SubString(text, nextind(text, newline)))
end

function failure(e, trace)
    kind = string(nameof(typeof(e)))
    string("error\n", kind, "\n", sprint(showerror, e), "\n-----\n", sprint(Base.show_backtrace, trace))
end

mask(text) = Bool[c == '1' for c in SubString(text, 2)]
checked(body) = typecheck(parse_program(body))
answer_text(arguments, programs::Program...) =
    program_text(("optimize" in arguments ? map(optimize, programs) : programs)...)

answer(::Val{C}, body, arguments) where {C} = throw(ArgumentError("unknown request $C"))
answer(::Val{:normalize}, body, arguments) = program_text(map(typecheck, parse_programs(body))...)
answer(::Val{:jvp}, body, arguments) = answer_text(arguments, jvp(checked(body), mask(arguments[1])))
answer(::Val{:optimize}, body, arguments) = program_text(optimize(checked(body)))
answer(::Val{:transpose}, body, arguments) =
    answer_text(arguments, transpose(checked(body), mask(arguments[1]), mask(arguments[2])))
answer(::Val{:vjp}, body, arguments) =
    answer_text(arguments, vjp(checked(body), mask(arguments[1]); value = arguments[2] == "1"))
function answer(::Val{:linearize}, body, arguments)
    compact = "compact" in arguments
    l = linearize(checked(body), mask(arguments[1]); compact = compact)
    "optimize" in arguments && (l = Linearized(optimize(l.known), optimize(l.linear), l.hastangent, l.residuals))
    if compact
        shorter = recomputed(l)
        l = shorter === l ? l : Linearized(optimize(shorter.known), optimize(shorter.linear), l.hastangent, shorter.residuals)
    end
    string(join(Int.(l.hastangent)), " ", l.residuals, "\n", program_text(l.known, l.linear))
end
answer(::Val{:rules}, body, arguments) = sprint() do io
    for op in sort!(collect(keys(PRIMITIVES)))
        println(io, op, " ", Int(hasjvp(primitive(op))), " ", Int(hastranspose(primitive(op))))
    end
end

hasjvp(op::Primitive) = !haszerotangent(op)
hastranspose(op::Primitive) = which(transpose, rule_signature(op)) !== which(transpose, rule_signature(Primitive))
hastranspose(op::Elementwise) = op.transpose !== nothing
rule_signature(op::Primitive) = rule_signature(typeof(op))
rule_signature(::Type{P}) where {P} = Tuple{P,Builder,Equation,Vector{MaybeAtom},Vector{Operand}}

function answer(::Val{:evaluate}, body, arguments)
    p = checked(body)
    pointers(k) = [parse(UInt, a) for a in split(arguments[k], ','; keepempty = false) if a != "-"]
    x = Any[buffer(aval(v), address) for (v, address) in zip(p.inputs, pointers(1))]
    y = with_constants(() -> evaluate(p, x), p, addresses_of(arguments[3]))
    for (a, value, address) in zip(p.outputs, y, pointers(2))
        copyto!(buffer(aval(a), address), value)
    end
    ""
end

addresses_of(text) = Dict(Pair(split(pair, '=')...) for pair in split(text, ','; keepempty = false) if pair != "-")

"Calls `f` while the constants that `p` refers to are to be found in the store."
function with_constants(f, p::Program, addresses)
    try
        store_constants!(p, addresses)
        f()
    finally
        empty!(CONSTANTS)
    end
end
function store_constants!(p::Program, addresses)
    for e in p.equations
        foreach(q -> store_constants!(q, addresses), bodies(e))
        e.op isa Constant && haskey(e.attrs, :ref) || continue
        ref = String(e[:ref])
        haskey(addresses, ref) && (CONSTANTS[ref] = buffer(aval(e.outputs[1]), parse(UInt, addresses[ref])))
    end
end

"A row-major buffer as a Julia array with reversed dimensions; the caller keeps it alive."
function buffer(type::TensorType, address::UInt)
    isstatic(type.shape) || throw(ProgramTypeError("cannot evaluate a Program with symbolic dimensions"))
    size = Tuple(reverse(Int.(type.shape)))
    prod(size) == 0 && return Array{type.dtype}(undef, size)
    unsafe_wrap(Array, Ptr{type.dtype}(address), size)
end

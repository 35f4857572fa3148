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
| `linearize ACTIVE` | a Program | mask of the results with a tangent, number of residuals; the known and the linear Program. With an argument `compact`, residuals are few and small: unrolled loops are rolled, factors are multiplied together, large ones that are cheap computed again |
| `transpose LINEAR COTANGENTS` | a Program | its transpose |
| `vjp ACTIVE VALUE` | a Program | its VJP, with the results in front when VALUE is 1 |
| `optimize` | a Program | the optimised Program |
| `evaluate IN,… OUT,… REF=ADDRESS,…` | a Program | runs it on row-major buffers, and constants, at these addresses (`-` for none) |
| `compile DIGEST REF=ADDRESS,…` | a Program | its FFI handler's address in native code, and the bytes of workspace; the constants at these addresses are used for ever |
| `rules` | | one line a primitive: name, has JVP rule, has transpose rule, never has a tangent, what its native code is (`own`, `fused`, `inlined` or `none`), the operands without derivative (`-` for none) |
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
    p = checked(body)
    l = linearize(compact ? rolled(p) : p, mask(arguments[1]); compact = compact)
    "optimize" in arguments && (l = Linearized(optimize(l.known), optimize(l.linear), l.hastangent, l.residuals))
    if compact
        shorter = recomputed(l)
        l = shorter === l ? l : Linearized(optimize(shorter.known), optimize(shorter.linear), l.hastangent, shorter.residuals)
    end
    string(join(Int.(l.hastangent)), " ", l.residuals, "\n", program_text(l.known, l.linear))
end
answer(::Val{:rules}, body, arguments) = sprint() do io
    for op in map(primitive, sort!(collect(keys(PRIMITIVES))))
        lacking = join(underived_operands(op), ',')
        println(io, name(op), " ", Int(hasjvp(op)), " ", Int(hastranspose(op)), " ", Int(haszerotangent(op)), " ", native_code(op), " ",
                isempty(lacking) ? "-" : lacking)
    end
end

hasjvp(op::Primitive) = !haszerotangent(op)
hasjvp(op::Elementwise) = !haszerotangent(op) && length(underived_operands(op)) != op.arity
hastranspose(op::Primitive) = specialised(transpose, op, Builder, Equation, Vector{MaybeAtom}, Vector{Operand})
hastranspose(op::Elementwise) = op.transpose !== nothing

"Whether `f` has a method for this primitive beside that for any."
specialised(f, op::Primitive, rest...) = which(f, Tuple{typeof(op),rest...}) !== which(f, Tuple{Primitive,rest...})

"The positions, from 0, of operands by which no derivative is known though by others it is."
underived_operands(op::Primitive) = Int[]
underived_operands(op::Elementwise) = op.tangents isa Tuple ? findall(t -> t === no_rule, collect(Any, op.tangents)) .- 1 : Int[]

native_code(op::Primitive) =
    hasmethod(element, Tuple{typeof(op),Nest,Equation,Int,Vector{Affine}}) ? "fused" : op isa Reduction ? "fused" :
    specialised(emit_step!, op, Frame, Equation) ? "own" : specialised(flatten_equation!, op, Builder, Equation, Vector{Atom}) ? "inlined" : "none"

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

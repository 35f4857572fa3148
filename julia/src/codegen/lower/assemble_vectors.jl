# Runs of instructions on vectors, written as one function in LLVM's text each: one such call costs
# Julia's compiler about as much as another, whatever it holds.

"The code, with a call of LLVM's in place of each run of `VectorStep`s."
assemble_vectors(k::KernelCode) = with(k; code = with_calls(k.code, k.generator.types))

with_calls(@nospecialize(x), types) = x
with_calls(p::Parallel, types) = with_body(p, with_calls(p.body, types))
with_calls(ex::Expr, types) = Expr(ex.head, with_calls(ex.args, types)...)
function with_calls(code::Vector{Any}, types)
    any(x -> x isa VectorStep, code) || return Any[with_calls(x, types) for x in code]
    uses, out, steps = Dict{Symbol,Int}(), Any[], VectorStep[]
    foreach(x -> count_uses!(uses, x), code)
    close!() = isempty(steps) || (append!(out, run_calls(steps, uses, types)); empty!(steps))
    for x in code
        x isa VectorStep && (push!(steps, x); continue)
        # what a pointer to the workspace is set to depends on nothing of the loop
        is_workspace_pointer(x) || close!()
        push!(out, with_calls(x, types))
    end
    close!()
    out
end
is_workspace_pointer(x) =
    x isa Expr && x.head === :(=) && x.args[2] isa Expr && x.args[2].head === :call &&
    x.args[2].args[1] === as_pointer && x.args[2].args[4] isa Int

count_uses!(uses, x) = nothing
count_uses!(uses, v::Symbol) = uses[v] = get(uses, v, 0) + 1
count_uses!(uses, ex::Expr) = foreach(a -> count_uses!(uses, a), ex.args)
count_uses!(uses, s::VectorStep) = foreach(x -> count_uses!(uses, x), operands(s.instruction))

# ---- a run

"Text of LLVM's that is being written: of which variables it is a function, and what it calls."
struct VectorText
    lines::Vector{String}
    arguments::Vector{Symbol}
    declarations::Vector{String}
    results::Dict{Symbol,Symbol}        # their names in the text, the same in equal runs
    types::Dict{Symbol,DataType}
end

"The statements that run the steps: a call, and variables set to what it gives."
function run_calls(steps, uses, types)
    text = VectorText(String[], Symbol[], String[], Dict{Symbol,Symbol}(), types)
    name(x) = operand_text!(text, x)
    declare(line) = line in text.declarations || push!(text.declarations, line)
    inside = Dict{Symbol,Int}()
    for s in steps
        r = Symbol(:r, length(text.results) + 1)
        push!(text.lines, instruction_text(s.instruction, r, s.n, s.T, name, declare))
        text.results[s.result] = r
        count_uses!(inside, s)
    end
    kept = [s for s in steps if get(uses, s.result, 0) > get(inside, s.result, 0)]
    T, type = kept_types(kept)
    append!(text.lines, return_lines(text, kept, type))
    call = llvm_call(text, T, type)
    isempty(kept) && return Any[call]
    length(kept) == 1 && return Any[:($(only(kept).result) = $call)]
    v = Symbol(first(kept).result, :_)
    Any[:($v = $call),
        (:($(s.result) = $(getfield)($v, $k)) for (k, s) in enumerate(kept))...]
end

"The text of an operand: a name of the text itself, an argument or a number."
function operand_text!(t::VectorText, v::Symbol)
    haskey(t.results, v) && return "%$(t.results[v])"
    k = findfirst(==(v), t.arguments)
    k === nothing && (push!(t.arguments, v); k = length(t.arguments))
    t.types[v] <: Ptr && !OPAQUE_POINTERS ? "%p$k" : "%$(k - 1)"
end
operand_text!(t::VectorText, x::Union{Float32,Float64}) =
    "0x" * string(reinterpret(UInt64, Float64(x)); base = 16, pad = 16)
operand_text!(t::VectorText, x::Bool) = string(Int(x))
"Lines that make pointers of the arguments that are."
pointer_lines(t::VectorText) =
    OPAQUE_POINTERS ? String[] :
    ["%p$k = inttoptr i64 %$(k - 1) to $(llvm_pointer(1, eltype(t.types[v])))"
     for (k, v) in enumerate(t.arguments) if t.types[v] <: Ptr]
argument_type(::Type{T}) where {T<:Ptr} = OPAQUE_POINTERS ? "ptr" : "i64"
argument_type(::Type{NTuple{n,VecElement{T}}}) where {n,T} = llvm_name(n, T)
argument_type(T) = llvm_name(T)

"The type of what a run gives, Julia's and LLVM's."
function kept_types(kept)
    isempty(kept) && return Cvoid, "void"
    T, names = [vector_type(s.n, s.T) for s in kept], [llvm_name(s.n, s.T) for s in kept]
    length(kept) == 1 && return only(T), only(names)
    Tuple{T...}, all_equal(names) ? "[$(length(names)) x $(names[1])]" : "{$(join(names, ", "))}"
end
function return_lines(t::VectorText, kept, type)
    isempty(kept) && return ["ret void"]
    length(kept) == 1 && return ["ret $type %$(t.results[only(kept).result])"]
    before(k) = k == 1 ? "undef" : "%all.$(k - 1)"
    value(s) = "$(llvm_name(s.n, s.T)) %$(t.results[s.result])"
    lines = ["%all.$k = insertvalue $type $(before(k)), $(value(s)), $(k - 1)"
             for (k, s) in enumerate(kept)]
    push!(lines, "ret $type %all.$(length(kept))")
end

"The call of the text's function."
function llvm_call(t::VectorText, T, type)
    body = join(vcat(pointer_lines(t), t.lines), "\n")
    arguments = [t.types[v] for v in t.arguments]
    Expr(:call, Core.Intrinsics.llvmcall, llvm_function(t.declarations, type,
            argument_type.(arguments), body), T, Tuple{arguments...}, t.arguments...)
end
"What `llvmcall` takes: before Julia 1.6 no module."
function llvm_function(declarations, type, arguments, body)
    isempty(declarations) && return body
    VERSION < v"1.6" && return join(declarations, "\n"), body
    text = "($(join(arguments, ", "))) alwaysinline {\n$body\n}"
    name = "vectors_$(string(hash(type * text); base = 16))"
    "$(join(declarations, "\n"))\ndefine $type @$name$text", name
end

# What a function calls, by what Julia has inferred of it, which compiling it needs anyway: costs
# little, and is not always enough to tell.

"The optimised code and the types of the arguments, the function's first."
struct InferredCode
    code::Core.CodeInfo
    arguments::Vector{Any}
end
InferredCode(s::Specialization) =
    InferredCode(inferred_code(s), Any[Core.Typeof(s.f), s.types.parameters...])

# In Julia 1.5 the compiler takes what has been inferred here; `code_typed` infers for itself.
if VERSION < v"1.6"
    inferred_code(s::Specialization) = Core.Compiler.typeinf_ext(
        only(Base.method_instances(s.f, s.types)), ccall(:jl_get_world_counter, UInt, ()))
else
    inferred_code(s::Specialization) = first(only(code_typed(s.f, s.types)))
end

const Compiler = Core.Compiler
const CONTROL = Union{(getfield(Core, T) for T in (:GotoNode, :GotoIfNot, :ReturnNode)
                       if isdefined(Core, T))...}

"What the compiler knows of a value: its type, or that it is a constant."
known(c::InferredCode, x) = Compiler.Const(x)
known(c::InferredCode, x::QuoteNode) = Compiler.Const(x.value)
known(c::InferredCode, x::Core.SSAValue) =
    (y = c.code.code[x.id]; y isa GlobalRef ? known(c, y) : c.code.ssavaluetypes[x.id])
known(c::InferredCode, x::Core.SlotNumber) = argument(c, x.id)
known(c::InferredCode, x::Compiler.Argument) = argument(c, x.n)
known(c::InferredCode, x::Expr) = Any
known(c::InferredCode, x::GlobalRef) =
    (y = constant_value(x); y === nothing ? Any : Compiler.Const(something(y)))
argument(c::InferredCode, k) = k <= length(c.arguments) ? c.arguments[k] : Any

type_of(c::InferredCode, x) = Compiler.widenconst(known(c, x))
constant(c::InferredCode, x) = (k = known(c, x); k isa Compiler.Const ? k.val : nothing)
"Whether a value of the type is bits, for which nothing is allocated."
isbitsvalue(@nospecialize(T)) = T isa DataType && isbitstype(T)
isbitsvalue(c::InferredCode, x) = isbitsvalue(type_of(c, x))

"""
    inferred_calls(specialization) -> callees, or nothing

The functions of Julia's that it calls; nothing where it is not certain that it does without
Julia's runtime."""
function inferred_calls(s::Specialization)
    c, callees, unused = InferredCode(s), Core.MethodInstance[], BitSet()
    for (k, statement) in enumerate(c.code.code)
        if statement isa Expr && statement.head === :invoke
            push!(callees, method_instance(statement.args[1]))
            # of a result that nothing uses, the type may be unknown
            isbitsvalue(c, Core.SSAValue(k)) || type_of(c, Core.SSAValue(k)) !== Any ||
                push!(unused, k)
        end
        k in unused || is_plain(c, k, statement) || return nothing
    end
    isempty(unused) || isempty(intersect!(unused, uses(c.code.code))) ? callees : nothing
end
"The statements that others use."
uses(code) = foldl(uses!, code; init = BitSet())
uses!(found, x) = found
uses!(found, x::Core.SSAValue) = push!(found, x.id)
uses!(found, x::Expr) = foldl(uses!, x.args; init = found)
uses!(found, x::Core.PiNode) = uses!(found, x.val)
uses!(found, x::Core.PhiNode) =
    foldl(uses!, (x.values[k] for k in eachindex(x.values) if isassigned(x.values, k));
        init = found)
uses!(found, x::CONTROL) =
    foldl(uses!, (getfield(x, k) for k in 1:fieldcount(typeof(x)) if isdefined(x, k));
        init = found)

"Whether statement k does nothing that may need Julia's runtime, calls of functions aside."
is_plain(c::InferredCode, k, x) = isbits(x)
is_plain(c::InferredCode, k, x::Union{CONTROL,Core.SSAValue,Core.SlotNumber,Core.QuoteNode}) = true
is_plain(c::InferredCode, k, x::GlobalRef) = constant_value(x) !== nothing
is_plain(c::InferredCode, k, x::Union{Core.PhiNode,Core.PiNode}) =
    isbitsvalue(c, Core.SSAValue(k))
function is_plain(c::InferredCode, k, x::Expr)
    head = x.head
    head in (:return, :gotoifnot, :meta, :loopinfo, :boundscheck, :inbounds) && return true
    head === :call && constant(c, x.args[1]) === getfield && reads_place(c, x) && return true
    isbitsvalue(c, Core.SSAValue(k)) || return false
    head === :call ? is_plain_call(c, constant(c, x.args[1]), x.args[2:end]) :
    head in (:invoke, :new, :static_parameter) || head === :foreigncall && calls_c(c, x.args[1])
end
# The compiler reads itself where an array's elements are, in two steps since Julia 1.11.
function reads_place(c, x)
    T, field = type_of(c, x.args[2]), constant(c, x.args[3])
    field === :ref && T <: Array || field === :ptr_or_offset && T <: MemoryReference
end
const MemoryReference =
    isdefined(Core, :GenericMemoryRef) ? getfield(Core, :GenericMemoryRef) : Union{}
calls_c(c, x::QuoteNode) = calls_c(c, x.value)
# the compiler reads the pointer of an array itself
calls_c(c, x::Symbol) = x === :jl_array_ptr || string(x) in C_FUNCTIONS
calls_c(c, x::String) = startswith(x, "llvm.")
calls_c(c, x) = type_of(c, x) <: Ptr

is_plain_call(c, @nospecialize(f), x) = false
is_plain_call(c, ::typeof(tuple), x) = true        # it is bits
is_plain_call(c, ::Union{typeof(===),typeof(Core.ifelse)}, x) = all(a -> isbitsvalue(c, a), x)
is_plain_call(c, ::typeof(getfield), x) =
    isbitsvalue(c, x[1]) && (hasfieldof(type_of(c, x[1]), constant(c, x[2])) ||
     length(x) == 3 && constant(c, x[3]) === false && type_of(c, x[1]) <: NTuple &&
     type_of(c, x[2]) === Int)
hasfieldof(T, field::Symbol) = field in fieldnames(T)
hasfieldof(T, k::Int) = 1 <= k <= fieldcount(T)
hasfieldof(T, field) = false
function is_plain_call(c, f::Core.IntrinsicFunction, x)
    f === Core.Intrinsics.llvmcall && return reads_llvmcall(c, x)
    types = Any[known(c, a) for a in x]
    f === Core.Intrinsics.pointerset && return length(x) == 4 && isbitsvalue(c, x[2]) &&
           type_of(c, x[1]) === Ptr{type_of(c, x[2])} && all(a -> type_of(c, a) === Int, x[3:4])
    f === Core.Intrinsics.pointerref &&
        !(type_of(c, x[1]) <: Ptr && isbitsvalue(eltype(type_of(c, x[1])))) && return false
    Compiler.intrinsic_nothrow(f, types)
end

# ---- LLVM's text in the code

"Whether LLVM reads the text of a call, which Julia makes an error of that is thrown at run time."
function reads_llvmcall(c, x)
    text, T, A = constant(c, x[1]), constant(c, x[2]), constant(c, x[3])
    T isa Type && A isa Type && A === Tuple{(type_of(c, a) for a in x[4:end])...} || return false
    names = Any[text_type(P) for P in A.parameters]
    any(isnothing, names) || text_type(T) === nothing ? false :
    isempty(syntax_error(module_of(text, text_type(T), names)))
end
module_of(text::String, T, names) = "define $T @text($(join(names, ", "))) {\n$text\n}"
# before Julia 1.6 declarations and the body, since then a whole module and its function's name
module_of((first, second)::Tuple{String,String}, T, names) =
    VERSION < v"1.6" ? string(first, '\n', module_of(second, T, names)) : first
module_of(text, T, names) = ""

"LLVM's name for what Julia has there, or nothing where there is none that all versions share."
text_type(::Type{Nothing}) = "void"
text_type(::Type{T}) where {T<:Union{Float32,Float64,Bool}} = llvm_name(T)
text_type(::Type{T}) where {T<:Union{Int8,UInt8,Int16,UInt16,Int32,UInt32,Int64,UInt64}} =
    "i$(8sizeof(T))"
text_type(::Type{T}) where {T<:Ptr} = argument_type(T)
text_type(::Type{NTuple{n,VecElement{T}}}) where {n,T<:Union{Float32,Float64,Bool}} =
    "<$n x $(llvm_name(T))>"
function text_type(::Type{T}) where {T<:Tuple}
    names = Any[text_type(P) for P in T.parameters]
    any(isnothing, names) ? nothing :
    all_equal(names) ? "[$(length(names)) x $(names[1])]" : "{$(join(names, ", "))}"
end
text_type(T) = nothing

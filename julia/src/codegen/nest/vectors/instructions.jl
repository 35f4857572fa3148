# Instructions on vectors. Julia has no other way to say them than LLVM's text.

"""
What straight-line code of vectors consists of, each with one result; variables are symbols. Equal
ones are computed once."""
abstract type Instruction end
"f(operands...), number by number; `types` are those of the operands' numbers."
struct Calculation <: Instruction
    f::Any
    operands::Vector{Any}
    types::Vector{DataType}
end
"f(operands...) of numbers."
struct Scalar <: Instruction
    f::Any
    operands::Vector{Any}
    type::DataType
end
"a + b, in one rounding with a product that is an operand."
struct Addition <: Instruction
    a::Symbol
    b::Symbol
end
"The lanes `order` of `a` and then `b`, two vectors of `n`; -1 where any will do."
struct Shuffle <: Instruction
    n::Int
    order::Vector{Int}
    a::Symbol
    b::Symbol
end
"The number `x` in all lanes."
struct Splat <: Instruction
    x::Any
end
"The vector `a` with `x` in a lane."
struct Insertion <: Instruction
    a::Symbol
    x::Any
    lane::Int
end
"A lane of a vector of `n`."
struct Extraction <: Instruction
    n::Int
    a::Symbol
    lane::Int
end
"Elements of memory from position `at` on."
struct Reading <: Instruction
    pointer::Symbol
    at::Int
end

# Operands are compared by identity: 0.0 is not -0.0.
fields(i::Instruction) = ntuple(k -> field(getfield(i, k)), fieldcount(typeof(i)))
field(x) = x
field(operands::Vector{Any}) = map(objectid, operands)
Base.:(==)(a::I, b::I) where {I<:Instruction} = fields(a) == fields(b)
Base.hash(i::Instruction, h::UInt) = hash(fields(i), hash(typeof(i), h))

# ---- expressions: `n` numbers of type T are the result

vector_type(n, T) = n == 1 ? T : NTuple{n,VecElement{T}}
llvm_name(::Type{Float64}) = "double"
llvm_name(::Type{Float32}) = "float"
llvm_name(::Type{Bool}) = "i8"
llvm_name(n::Int, T) = n == 1 ? llvm_name(T) : "<$n x $(llvm_name(T))>"
isvectorized(T) = T === Float64 || T === Float32

"`%r = …` of the operands %0, %1, …: as many numbers of a type as the pairs say."
function llvm_call(text, (n, T), operands, types...)
    Expr(:call, Core.Intrinsics.llvmcall, "$text\nret $(llvm_name(n, T)) %r", vector_type(n, T),
        Tuple{(vector_type(m, S) for (m, S) in types)...}, operands...)
end
"Up to here memory is written, for LLVM; the processor is told nothing."
const COMPILER_FENCE = Expr(:call, Core.Intrinsics.llvmcall,
    "fence syncscope(\"singlethread\") seq_cst\nret void", Cvoid, Tuple{})
"The function of vectors of n numbers that LLVM has under that name."
llvm_intrinsic(name, n, T, x) =
    Expr(:call, :ccall, "llvm.$name.v$(n)f$(8sizeof(T))", :llvmcall, vector_type(n, T),
        Expr(:tuple, (vector_type(n, T) for _ in x)...), x...)

"What LLVM calls functions of so many numbers of one type."
const VECTOR_INSTRUCTIONS = Dict{Tuple{Any,Int},String}((+, 2) => "fadd", (-, 1) => "fneg",
    (-, 2) => "fsub", (quotient, 2) => "fdiv",
    # a sum may take the product with it in one rounding
    (*, 2) => "fmul contract",
    (==, 2) => "fcmp oeq", (!=, 2) => "fcmp une", (<, 2) => "fcmp olt", (<=, 2) => "fcmp ole",
    (>, 2) => "fcmp ogt", (>=, 2) => "fcmp oge")
const VECTOR_INTRINSICS = IdDict{Any,String}(NumberMath.sqrt => "sqrt", absolute => "fabs",
    fma => "fma")

"Whether there are vectors' instructions for f of numbers of these types, with results of type T."
function has_instruction(@nospecialize(f), types, T)
    f === selected && return types == [Bool, T, T] && isvectorized(T)
    S = types[1]
    isvectorized(S) && all(==(S), types) || return false
    (haskey(VECTOR_INTRINSICS, f) || isexpanded(f)) && return T === S
    name = get(VECTOR_INSTRUCTIONS, (f, length(types)), "")
    !isempty(name) && T === (startswith(name, "fcmp") ? Bool : S)
end

function expression(i::Calculation, n, T)
    S, f = i.types[1], i.f
    pairs, type = [n => U for U in i.types], llvm_name(n, S)
    if f === selected       # of two cases: not the first but the second, where the condition holds
        case = llvm_name(n, T)
        text = "%c = trunc <$n x i8> %0 to <$n x i1>
                %r = select <$n x i1> %c, $case %2, $case %1"
        return llvm_call(text, n => T, i.operands, pairs...)
    end
    haskey(VECTOR_INTRINSICS, f) &&
        return llvm_intrinsic(VECTOR_INTRINSICS[f], n, T, i.operands)
    text = "$(VECTOR_INSTRUCTIONS[f, length(i.operands)]) $type %0"
    length(i.operands) == 2 && (text *= ", %1")
    text = T === Bool ? "%c = $text\n%r = zext <$n x i1> %c to <$n x i8>" : "%r = $text"
    llvm_call(text, n => T, i.operands, pairs...)
end
expression(i::Addition, n, T) =
    llvm_call("%r = fadd contract $(llvm_name(n, T)) %0, %1", n => T, (i.a, i.b), n => T, n => T)
function expression(i::Shuffle, n, T)
    mask = join((k < 0 ? "i32 undef" : "i32 $k" for k in i.order), ", ")
    type, one_ = llvm_name(i.n, T), i.a === i.b
    text = "%r = shufflevector $type %0, $type $(one_ ? "undef" : "%1"), <$n x i32> <$mask>"
    one_ ? llvm_call(text, n => T, (i.a,), i.n => T) :
    llvm_call(text, n => T, (i.a, i.b), i.n => T, i.n => T)
end
function expression(i::Splat, n, T)
    type = llvm_name(n, T)
    text = "%y = insertelement $type undef, $(llvm_name(T)) %0, i32 0
            %r = shufflevector $type %y, $type undef, <$n x i32> zeroinitializer"
    llvm_call(text, n => T, (i.x,), 1 => T)
end
expression(i::Insertion, n, T) =
    llvm_call("%r = insertelement $(llvm_name(n, T)) %0, $(llvm_name(T)) %1, i32 $(i.lane)",
        n => T, (i.a, i.x), n => T, 1 => T)
expression(i::Extraction, n, T) =
    llvm_call("%r = extractelement $(llvm_name(i.n, T)) %0, i32 $(i.lane)", 1 => T, (i.a,),
        i.n => T)
expression(i::Reading, n, T) =
    :($(Core.Intrinsics.pointerref)($(address(i.pointer, i.at, n, T)...), 1))
expression(i::Scalar, n, T) = step_expression(Apply(i.f, i.operands), T, Any[])

"Writes n numbers to memory from position `at` on."
function writing(pointer, at, n, T, x)
    p, k = address(pointer, at, n, T)
    :($(Core.Intrinsics.pointerset)($p, $x, $k, 1))
end
"A pointer to such, and which of them it is."
address(pointer, at, n, T) = n == 1 ? (pointer, at + 1) : (vector_pointer(pointer, at, n, T), 1)
vector_pointer(pointer, at, n, T) =
    :($(Core.Intrinsics.bitcast)($(Ptr{vector_type(n, T)}),
        $(pointer_plus(pointer, at * sizeof(T)))))
# As Base's addition of a pointer and a number, which inference would have to look into each time.
pointer_plus(pointer, bytes) =
    bytes == 0 ? pointer :
    :($(Core.Intrinsics.add_ptr)($(pointer_operand(pointer)), $(UInt(bytes))))
pointer_operand(pointer) =
    VERSION < v"1.12-" ? :($(Core.Intrinsics.bitcast)(UInt, $pointer)) : pointer

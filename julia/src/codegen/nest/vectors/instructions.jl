# Instructions on vectors, and on numbers together with them.

"""
What straight-line code of vectors consists of; variables are symbols. All but `Writing` have one
result, and equal ones are computed once."""
abstract type Instruction end
"f(operands...), number by number; `types` are those of the operands' numbers."
struct Calculation <: Instruction
    f::Any
    operands::Vector{Any}
    types::Vector{DataType}
end
"f(operands...) of numbers, by Julia's code: there is no instruction."
struct Scalar <: Instruction
    f::Any
    operands::Vector{Any}
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
"Writes `x` to memory from position `at` on."
struct Writing <: Instruction
    pointer::Symbol
    at::Int
    x::Any
end

"The variables and numbers that an instruction takes."
function operands(@nospecialize(i::Instruction))
    xs = Any[]
    for k in 1:fieldcount(typeof(i))
        append!(xs, operands(getfield(i, k)))
    end
    xs
end
operands(x::Union{Symbol,Vector{Any}}) = x isa Symbol ? (x,) : x
operands(x) = ()

# By identity: a number that is an operand is another than the equal one of another type, which a
# vector of the one cannot stand for, and 0.0 is not -0.0. These and what computes values are not
# compiled for each type of instruction, function and dtype: that would take longer than they run.
function Base.:(==)(@nospecialize(a::Instruction), @nospecialize(b::Instruction))
    typeof(a) === typeof(b) || return false
    for k in 1:fieldcount(typeof(a))
        identical(getfield(a, k), getfield(b, k)) || return false
    end
    true
end
identical(@nospecialize(a), @nospecialize(b)) = a === b
function identical(@nospecialize(a::Vector), @nospecialize(b::Vector))
    length(a) == length(b) || return false
    for k in 1:length(a)
        a[k] === b[k] || return false
    end
    true
end
function Base.hash(@nospecialize(i::Instruction), h::UInt)
    h = hash(typeof(i), h)
    for k in 1:fieldcount(typeof(i))
        h = identity_hash(getfield(i, k), h)
    end
    h
end
identity_hash(@nospecialize(x), h) = hash(objectid(x), h)
function identity_hash(@nospecialize(x::Vector), h)
    for y in x
        h = identity_hash(y, h)
    end
    h
end

"What an instruction gives, `n` numbers of type T: those that are equal are computed once."
struct Computed
    n::Int
    T::DataType
    instruction::Instruction
end
Base.:(==)(a::Computed, b::Computed) =
    a.n == b.n && a.T === b.T && a.instruction == b.instruction
Base.hash(r::Computed, h::UInt) = hash(r.n, hash(r.T, hash(r.instruction, h)))

"""
A statement of a kernel's code until `assemble_vectors`: the variable `result` is set to what the
instruction gives, `n` numbers of type T."""
struct VectorStep
    result::Symbol
    instruction::Instruction
    n::Int
    T::DataType
end
vector_type(n, T) = n == 1 ? T : NTuple{n,VecElement{T}}

# ---- LLVM's text: Julia has no other way to say them

llvm_name(::Type{Float64}) = "double"
llvm_name(::Type{Float32}) = "float"
llvm_name(::Type{Bool}) = "i8"
llvm_name(n::Int, T) = n == 1 ? llvm_name(T) : "<$n x $(llvm_name(T))>"
isvectorized(T) = T === Float64 || T === Float32

"What LLVM calls functions of two numbers of one type."
const VECTOR_INSTRUCTIONS = IdDict{Any,String}((+) => "fadd", (-) => "fsub",
    quotient => "fdiv",
    # a sum may take the product with it in one rounding
    (*) => "fmul contract",
    (==) => "fcmp oeq", (!=) => "fcmp une", (<) => "fcmp olt", (<=) => "fcmp ole",
    (>) => "fcmp ogt", (>=) => "fcmp oge")
"The same, or an empty text."
instruction_name(@nospecialize(f), n) =
    n == 2 ? get(VECTOR_INSTRUCTIONS, f, "")::String : n == 1 && f === (-) ? "fneg" : ""
const VECTOR_INTRINSICS = IdDict{Any,String}(NumberMath.sqrt => "sqrt", absolute => "fabs",
    fma => "fma", muladd => "fmuladd")

"Whether there are instructions for f of numbers of these types, with results of type T."
function has_instruction(@nospecialize(f), types, T)
    f === selected && return types == [Bool, T, T] && isvectorized(T)
    isempty(types) && return false
    S = types[1]
    isvectorized(S) && all(==(S), types) || return false
    (haskey(VECTOR_INTRINSICS, f) || isexpanded(f)) && return T === S
    name = instruction_name(f, length(types))
    !isempty(name) && T === (startswith(name, "fcmp") ? Bool : S)
end

"""
The lines that set %r to what an instruction gives. `name(x)` is the text of an operand or of a
pointer, `declare(line)` asks for a function of LLVM's."""
function instruction_text(i::Calculation, r, n, T, name, declare)
    S, f, x = i.types[1], i.f, map(name, i.operands)
    type = llvm_name(n, S)
    if f === selected       # of two cases: not the first but the second, where the condition holds
        case = llvm_name(n, T)
        return """%$r.c = trunc $type $(x[1]) to $(flags(n))
                  %$r = select $(flags(n)) %$r.c, $case $(x[3]), $case $(x[2])"""
    elseif haskey(VECTOR_INTRINSICS, f)
        g = "@llvm.$(VECTOR_INTRINSICS[f]).$(n == 1 ? "" : "v$n")f$(8sizeof(T))"
        declare("declare $type $g($(join((type for _ in x), ", ")))")
        return "%$r = call $type $g($(join(("$type $y" for y in x), ", ")))"
    end
    text = "$(instruction_name(f, length(x))) $type $(join(x, ", "))"
    T === Bool ? "%$r.c = $text\n%$r = zext $(flags(n)) %$r.c to $(llvm_name(n, Bool))" :
    "%$r = $text"
end
flags(n) = n == 1 ? "i1" : "<$n x i1>"
instruction_text(i::Addition, r, n, T, name, declare) =
    "%$r = fadd contract $(llvm_name(n, T)) $(name(i.a)), $(name(i.b))"
function instruction_text(i::Shuffle, r, n, T, name, declare)
    mask = join((k < 0 ? "i32 undef" : "i32 $k" for k in i.order), ", ")
    type, b = llvm_name(i.n, T), i.a === i.b ? "undef" : name(i.b)
    "%$r = shufflevector $type $(name(i.a)), $type $b, <$n x i32> <$mask>"
end
function instruction_text(i::Splat, r, n, T, name, declare)
    type = llvm_name(n, T)
    """%$r.0 = insertelement $type undef, $(llvm_name(T)) $(name(i.x)), i32 0
       %$r = shufflevector $type %$r.0, $type undef, <$n x i32> zeroinitializer"""
end
instruction_text(i::Insertion, r, n, T, name, declare) =
    "%$r = insertelement $(llvm_name(n, T)) $(name(i.a)), $(llvm_name(T)) $(name(i.x)), " *
    "i32 $(i.lane)"
instruction_text(i::Extraction, r, n, T, name, declare) =
    "%$r = extractelement $(llvm_name(i.n, T)) $(name(i.a)), i32 $(i.lane)"
instruction_text(i::Reading, r, n, T, name, declare) =
    llvm_address(r, n, T, name(i.pointer), i.at) *
    "%$r = load $(llvm_name(n, T)), $(llvm_pointer(n, T)) %$r.p, align $(sizeof(T))"
instruction_text(i::Writing, r, n, T, name, declare) =
    llvm_address(r, n, T, name(i.pointer), i.at) *
    "store $(llvm_name(n, T)) $(name(i.x)), $(llvm_pointer(n, T)) %$r.p, align $(sizeof(T))"

"Lines that set %r.p to the address of `n` elements from position `at` on."
function llvm_address(r, n, T, pointer, at)
    element = n > 1 && !OPAQUE_POINTERS ? "$r.e" : "$r.p"
    text = "%$element = getelementptr $(llvm_name(T)), $(llvm_pointer(1, T)) $pointer, i64 $at\n"
    element == "$r.p" ? text :
    text * "%$r.p = bitcast $(llvm_pointer(1, T)) %$element to $(llvm_pointer(n, T))\n"
end
# From Julia 1.12 on pointers have no types, and Julia's are pointers to LLVM, no integers.
const OPAQUE_POINTERS = VERSION >= v"1.12-"
llvm_pointer(n, T) = OPAQUE_POINTERS ? "ptr" : "$(llvm_name(n, T))*"

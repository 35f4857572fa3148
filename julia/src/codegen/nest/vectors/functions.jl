# Functions of vectors: those of several instructions, and those that LLVM makes vectors of in a
# loop over all elements of a small nest.

"f of vectors of n numbers of type T (or flags)."
calculated!(c::VectorCode, n, @nospecialize(T), @nospecialize(f), @nospecialize(operands)) =
    computed!(c, n, T,
        Calculation(f, Any[vector!(c, x, n) for x in operands],
            DataType[type_of(c, x) for x in operands]); cost = step_cost(f, n))
# Divisions and square roots take their time for each number, the others for a vector.
step_cost(f, n) = f === quotient || f === NumberMath.sqrt ? max(8.0, 3.0n) : 1.0

"Functions that are several instructions, for real numbers."
const EXPANDED = Union{typeof(NumberMath.one_minus_square),typeof(larger),typeof(smaller),
    IntegerPower}
isexpanded(@nospecialize(f)) = f isa EXPANDED

function calculated!(c::VectorCode, n, T, ::typeof(NumberMath.one_minus_square), (x,))
    negative = calculated!(c, n, T, -, (x,))
    calculated!(c, n, T, fma, (negative, x, one(T)))
end
calculated!(c::VectorCode, n, T, ::typeof(larger), x) = extremum!(c, n, T, >, x...)
calculated!(c::VectorCode, n, T, ::typeof(smaller), x) = extremum!(c, n, T, <, x...)
# NaN wins: where only b is one, no comparison holds.
function extremum!(c, n, T, compares, a, b)
    y = calculated!(c, n, T, selected, (calculated!(c, n, Bool, compares, (a, b)), b, a))
    calculated!(c, n, T, selected, (calculated!(c, n, Bool, !=, (a, a)), y, a))
end
# As NumberMath.integer_pow, by repeated squaring.
function calculated!(c::VectorCode, n, T, ::IntegerPower{N}, (x,)) where {N}
    N == 0 && return Pack(vector!(c, one(T), n), n)
    power = nothing
    for bit in reverse(digits(abs(N); base = 2))
        power = power === nothing ? x : calculated!(c, n, T, *, (power, power))
        bit == 1 && power !== x && (power = calculated!(c, n, T, *, (power, x)))
    end
    N < 0 ? calculated!(c, n, T, quotient, (one(T), power)) : power
end

# ---- loops

"A local variable that points to `n` elements of the workspace for the time of the nest."
struct Scratch
    pointer::Symbol
    type::DataType
    n::Int
end
"The loop that writes f of the elements of `arguments` to `result`."
struct FunctionLoop
    f::Any
    type::DataType
    n::Int
    arguments::Vector{Symbol}
    result::Symbol
end

"f of what the operands are at each pack."
function function_values!(c::VectorCode, @nospecialize(f), @nospecialize(T), operands)
    packs = unique(xs for xs in operands if any(x -> x isa Pack, xs))
    y = isempty(packs) ? Any[] : function_loop!(c, f, T, packs)
    values = Any[]
    for xs in operands
        k = findfirst(==(xs), packs)
        push!(values, k === nothing ?
            scalar!(c, T, f, numbers!(c, xs); cost = FUNCTION_COST) : y[k])
    end
    values
end
"f of the elements of all packs, in one loop."
function function_loop!(c::VectorCode, @nospecialize(f), @nospecialize(T), packs)
    widths = [maximum(Int[x.width for x in xs if x isa Pack]) for xs in packs]
    lanes, starts = LOOP_BYTES ÷ sizeof(T), cumsum(vcat(0, widths))
    n = cld(sum(widths), lanes) * lanes             # whole vectors: what is beyond is not read
    arguments = Symbol[scratch!(c, T, n) for _ in packs[1]]
    for (k, p) in enumerate(arguments)
        put_whole!(c, p,
            Any[lane_of(xs[k], j) for (xs, w) in zip(packs, widths) for j in 0:w-1], T)
    end
    result = scratch!(c, T, n)
    push!(c.code, FunctionLoop(f, T, n, arguments, result))
    c.cost += 2length(packs) + n ÷ lanes * FUNCTION_COST
    Any[computed!(c, width, T, Reading(result, at)) for (at, width) in zip(starts, widths)]
end
"""
Writes elements to memory in vectors as wide as those by which the loop reads them: a reading of
what several writings have just left has to wait. What is beyond the last element is like it."""
function put_whole!(c::VectorCode, pointer, elements, @nospecialize(T))
    lanes = LOOP_BYTES ÷ sizeof(T)
    for at in 0:lanes:length(elements)-1
        part = Any[elements[min(at + k, end)] for k in 1:lanes]
        store_numbers!(c, pointer, at, lanes, T, vector!(c, gathered!(c, part), lanes))
    end
end
function scratch!(c::VectorCode, @nospecialize(T), n)
    p = new_symbol!(c, Ptr{T})
    push!(c.code, Scratch(p, T, n))
    p
end

# ---- code

"Writes a part of straight-line code; `parts` collects what it takes of the workspace."
emit_part!(g::Generator, parts, ex::Expr) = emit_code!(g, ex)
emit_part!(g::Generator, parts, s::VectorStep) = emit_code!(g, statement(s, s.instruction))
statement(s::VectorStep, ::Instruction) = s
statement(s::VectorStep, i::Scalar) =
    :($(s.result) = $(step_expression(Apply(i.f, i.operands), s.T, Any[])))
function emit_part!(g::Generator, parts, s::Scratch)
    push!(parts, allocate!(g.arena, s.n * sizeof(s.type)))
    emit_code!(g,
        :($(s.pointer) = $(workspace_pointer(g.target, g, s.type, first(last(parts))))))
end
function emit_part!(g::Generator, parts, l::FunctionLoop)
    # LLVM would know the first element, take the loop apart there, and find no vectors in it
    emit_code!(g, COMPILER_FENCE)
    annotations = l.n > AT_ONCE ÷ sizeof(l.type) ? VECTOR_LOOP : SHORT_LOOP
    vector_loop!(g, l.n; annotations = annotations) do i
        x = Any[local!(g, l.type, :($(unsafe_load)($p, $(plus(i, 1))))) for p in l.arguments]
        y = local!(g, l.type, step_expression(Apply(l.f, x), l.type, Any[]))
        emit_code!(g, :($(unsafe_store!)($(l.result), $y, $(plus(i, 1)))))
    end
end

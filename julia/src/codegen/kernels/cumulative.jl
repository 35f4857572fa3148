# Cumulative reductions.

"How many elements lie before, along and after an axis, in memory."
function around_axis(type::TensorType, axis)
    n = Int[Int(d) for d in type.shape]
    prod(n[1:axis]), n[axis+1], prod(n[axis+2:end])
end

"Writes a call of a routine."
call!(s::Frame, f, arguments...) = emit_code!(s.generator, Expr(:call, f, arguments...))
"Several values of the code as one argument."
tuple_of(x...) = Expr(:call, tuple, x...)

"The combiner in functions that throw nothing."
native_combiner(op) = combiner(op)
native_combiner(::CumLogSumExp) = native_logaddexp
@inline native_logaddexp(a::Complex, b::Complex) =
    complex_logaddexp(NumberMath.exp, NumberMath.log1p, a, b)
@inline function native_logaddexp(a, b)
    m = max(a, b)
    ifelse(a == b, a + oftype(a, log(2)),
        ifelse(isnan(m), m, m + NumberMath.log1p(NumberMath.exp(-abs(a - b)))))
end

function emit_step!(op::Cumulative, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    before, along, after = around_axis(aval(v), e[:axis])
    from, to, A = memory_of(s, x), memory!(s, v), accumulator(dtype(v))
    blocks = along > RUNNING_BLOCK && !combines_exactly(op, A)
    routine = blocks ? Routines.accumulate_blocks! : Routines.accumulate!
    with_elements(s, A, blocks ? Routines.running_memory(along, after) : after) do memory
        call!(s, routine, native_combiner(op), to.pointer, from.pointer, memory, before, along,
            after, e[:reverse])
    end
end

# The loop along a row that is passed many times, for LLVM to vectorise.

const VECTOR_LOOP = (Symbol("julia.simdloop"), Symbol("julia.ivdep"))
"A loop whose trips do not depend on each other."
vector_loop!(@nospecialize(f), g::Generator, n; from = 0, annotations = VECTOR_LOOP) =
    counted_loop!(f, g, n; from = from, annotations = annotations)

# LLVM unrolls a loop of few trips before it looks for vectors, and then makes vectors of the loop
# around it: of elements that lie apart and are loaded and stored one by one. If it may not unroll
# it makes vectors of the few, provided that none are left over.
const SHORT_LOOP = (VECTOR_LOOP..., (Symbol("llvm.loop.unroll.disable"),))

"""
`f(i)` writes the body of the loop over positions of a row within the loops over `variables`. A
short row goes in stretches of 32, 16, 8, 4, 2 and 1."""
function row_loop!(@nospecialize(f), g::Generator, part, sums, variables, from, to)
    lengths =
        isempty(variables) || !cuts_rows(g.target) ? Int[] :
        stretches(from, to, short_rows(part, sums))
    (isempty(lengths) || length(lengths) * (length(part.steps) + 1) > MOST_STEPS) &&
        return vector_loop!(f, g, to; from = from)
    for n in lengths
        n == 1 ? f(local!(g, Int, from)) :
        vector_loop!(f, g, from + n; from = from, annotations = SHORT_LOOP)
        from += n
    end
end

"""
The powers of two, falling, whose sum is the length of a row that is one of the
`short`; none for others."""
stretches(from, to, short) = Int[]
stretches(from::Int, to::Int, short) =
    to - from in short ? Int[1 << k for k in 5:-1:0 if (to - from) >> k & 1 == 1] : Int[]

# A stretch takes the time of a whole vector, and at its end one more for each extremum, so that the
# shortest rows are better off as before.
function short_rows(part, sums)
    least =
        any(islong, part.steps) ? SHORT_ROW_OF_LONG_FUNCTIONS :
        any(r -> r.op isa Extremum, keys(sums)) ? SHORT_ROW_OF_EXTREMA : SHORT_ROW
    most = LONG_ROW_BYTES ÷ foldl(max, Int[sizeof(T) for (_, _, T) in part.steps]; init = 4) - 1
    least:most
end
islong((_, step, T)) = step isa Apply && islong_function(step.f)
islong_function(f) = f in LONG_FUNCTIONS
islong_function(w::Widened) = islong_function(w.f)
islong_function(e::Versioned) = true
const LONG_FUNCTIONS = Base.IdSet{Any}()
for op in values(PRIMITIVES)
    op isa Elementwise && op.cost >= LONG_FUNCTION || continue
    push!(LONG_FUNCTIONS, op.kernel)
    for T in (Float32, Float64)
        form = fast_form(op.kernel, T)
        form === nothing || push!(LONG_FUNCTIONS, form[1])
    end
end

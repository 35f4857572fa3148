# Loops along the last axis of a nest, for LLVM to vectorise.

const VECTOR_LOOP = (Symbol("julia.simdloop"), Symbol("julia.ivdep"))
"A loop whose trips do not depend on each other."
vector_loop!(f, g::Generator, n; from = 0, annotations = VECTOR_LOOP) = counted_loop!(f, g, n; from = from, annotations = annotations)

# LLVM unrolls a loop of few trips before it looks for vectors, and then makes vectors of the loop around it: of elements that lie apart and
# are loaded and stored one by one. If it may not unroll it makes vectors of the few, provided that none are left over.
const SHORT_LOOP = (VECTOR_LOOP..., (Symbol("llvm.loop.unroll.disable"),))
# Rows of which LLVM would leave many elements over, and the most code, in steps, that such a row may become.
const SHORT_ROWS, MOST_STEPS = 4:63, 200

"""
`f(i)` writes the body, of so many `steps`, of the loop over a row within the loops over `variables`: a short row goes in stretches of 32,
16, 8, 4, 2 and 1."""
function row_loop!(f, g::Generator, variables, from, to, steps)
    lengths = isempty(variables) || g.plain ? Int[] : stretches(from, to)
    (isempty(lengths) || length(lengths) * (steps + 1) > MOST_STEPS) && return vector_loop!(f, g, to; from = from)
    for n in lengths
        n == 1 ? f(local!(g, Int, from)) : vector_loop!(f, g, from + n; from = from, annotations = SHORT_LOOP)
        from += n
    end
end

"The powers of two, falling, whose sum is a short row's length; none if it is not short."
stretches(from, to) = Int[]
stretches(from::Int, to::Int) = to - from in SHORT_ROWS ? Int[1 << k for k in 5:-1:0 if (to - from) >> k & 1 == 1] : Int[]

# The loop along a row that is passed many times, for LLVM to vectorise.

const VECTOR_LOOP = (Symbol("julia.simdloop"), Symbol("julia.ivdep"))
"A loop whose trips do not depend on each other."
vector_loop!(@nospecialize(f), g::Generator, n; from = 0, annotations = VECTOR_LOOP) =
    counted_loop!(f, g, n; from = from, annotations = annotations)

# LLVM unrolls a loop of few trips before it looks for vectors, and then makes vectors of the loop
# around it: of elements that lie apart and are loaded and stored one by one. If it may not unroll
# it makes vectors of the few, provided that none are left over.
const SHORT_LOOP = (VECTOR_LOOP..., (Symbol("llvm.loop.unroll.disable"),))
"Up to here memory is written, for LLVM; the processor is told nothing."
const COMPILER_FENCE = Expr(:call, Core.Intrinsics.llvmcall,
    "fence syncscope(\"singlethread\") seq_cst\nret void", Cvoid, Tuple{})

"""
`f(i)` writes the body of the loop over positions of a row within the loops over `variables`. A row
goes in stretches of whole vectors."""
function row_loop!(@nospecialize(f), g::Generator, part, sums, variables, from, to)
    lengths =
        cuts_rows(g.target) ? row_stretches(from, to, part, sums, isempty(variables)) : Int[]
    (isempty(lengths) || length(lengths) * (length(part.steps) + 1) > MOST_STEPS) &&
        return in_two_sums!((a, b) -> vector_loop!(f, g, b; from = a), g, part, sums, from, to)
    for n in lengths
        # where a loop before has read the first element LLVM would take this one apart there
        n <= at_once(part) && any(islong, part.steps) && emit_code!(g, COMPILER_FENCE)
        n == 1 ? f(local!(g, Int, from)) :
        vector_loop!(f, g, from + n; from = from,
            annotations = n > at_once(part) ? VECTOR_LOOP : SHORT_LOOP)
        from += n
    end
end

"""
`f(a, b)` writes the loop over positions a … b - 1 of a row. What is left of LLVM's vectors has
sums of its own: its terms would be added one by one to all that is before."""
in_two_sums!(f, g::Generator, part, sums, from, to) = f(from, to)
function in_two_sums!(f, g::Generator, part, sums, from::Int, to::Int)
    rest = (to - from) % at_once(part)
    added = [r for r in keys(sums) if adds_floats(r)]
    (isempty(added) || rest < 2 || to - from < SHORTEST_IN_TWO_SUMS) && return f(from, to)
    f(from, to - rest)
    before = [local!(g, r.type, sums[r]) for r in added]
    foreach(r -> emit_code!(g, :($(sums[r]) = $(neutral(r.op, r.type)))), added)
    f(to - rest, to)
    for (r, sum) in zip(added, before)
        emit_code!(g, :($(sums[r]) = $(accumulated(r, sum, sums[r]))))
    end
end

"""
The lengths of a row's stretches: what LLVM's vectors pass without a remainder, which they would
pass one by one, and falling powers of two, one vector each or two. None for a row whose ends are
not known, that is too short or so long that the remainder does not matter; for a short one that is
`alone`, which LLVM writes out; and for a long one with sums, of which each stretch adds up its
lanes, unless functions take longer."""
row_stretches(from, to, part, sums, alone) = Int[]
function row_stretches(from::Int, to::Int, part, sums, alone)
    n = to - from
    least_row(part, sums) <= n <= LONG_ROW || return Int[]
    isleft = n < at_once(part) ? alone : !isempty(sums)
    isleft && !any(islong, part.steps) && return Int[]
    rest = n % at_once(part)
    lengths = vcat(n - rest, Int[1 << k for k in 7:-1:0 if rest >> k & 1 == 1])
    filter(>(0), lengths)
end
"The elements that LLVM's loops pass at a time at most."
at_once(part) = AT_ONCE ÷ widest(part)
widest(part) = foldl(max, Int[sizeof(T) for (_, _, T) in part.steps]; init = 4)

# A stretch takes the time of a whole vector, and at its end one more for each extremum, so that the
# shortest rows are better off as before.
least_row(part, sums) =
    any(r -> r.op isa Extremum, keys(sums)) ? SHORT_ROW_OF_EXTREMA :
    any(islong, part.steps) && isempty(sums) && !any(ischecked, part.steps) ?
    SHORT_ROW_OF_LONG_FUNCTIONS : SHORT_ROW
islong((_, step, T)) = step isa Apply && islong_function(step.f)
ischecked((_, step, T)) = step isa Apply && step.f in FAST_FORMS
islong_function(@nospecialize(f)) = f in LONG_FUNCTIONS
islong_function(w::Widened) = islong_function(w.f)
islong_function(e::Versioned) = true
const LONG_FUNCTIONS, FAST_FORMS = Base.IdSet{Any}(), Base.IdSet{Any}()
for op in values(PRIMITIVES)
    op isa Elementwise && op.cost >= LONG_FUNCTION || continue
    push!(LONG_FUNCTIONS, op.kernel)
    for T in (Float32, Float64)
        form = fast_form(op.kernel, T)
        form === nothing || foreach(set -> push!(set, form[1]), (LONG_FUNCTIONS, FAST_FORMS))
    end
end

# Functions with a faster form for ordinary arguments: a stretch of a row looks at its arguments
# first and then takes one loop or the other.

"""
A step that has a form `fast` for operands of extent at most `limit`, and the steps that its
operands take."""
struct FastPath
    step::Symbol
    fast::Any
    operands::Vector{Any}
    limit::Number
    needs::Vector{Tuple{Symbol,Step,DataType}}
end

function fast_paths(part::RowPart)
    found = FastPath[]
    made = Dict{Symbol,Int}(v => k for (k, (v, _, _)) in enumerate(part.steps))
    for (v, step, T) in part.steps
        step isa Apply || continue
        form = fast_form(step.f, T)
        form === nothing && continue
        needs = steps_behind(part.steps, made, step.operands)
        length(needs) <= LONGEST_CHECK && !any(hasfast_form, needs) || continue
        push!(found, FastPath(v, form[1], step.operands, form[2], needs))
    end
    found
end

"""
The form of a function of numbers for ordinary arguments, and their greatest
extent (`NumberMath.extent`), or nothing."""
fast_form(@nospecialize(f), T) = NumberMath.near(f, T)

"""
Where there is no row, a branch decides. The limit is of the type: a value with data is no
function to call by name."""
struct Versioned{limit,F,N}
    f::F
    fast::N
end
Versioned(f, fast, limit) = Versioned{limit,typeof(f),typeof(fast)}(f, fast)
(e::Versioned{limit})(x::Vararg{Any,N}) where {limit,N} =
    NumberMath.extent(x...) <= limit ? e.fast(x...) : e.f(x...)
limit(::Versioned{L}) where {L} = L
function with_branches(part::RowPart)
    chosen(step::Step, T) = step
    chosen(step::Apply, T) =
        (form = fast_form(step.f, T);
        form === nothing ? step :
        Apply(Versioned(step.f, form...), step.operands))
    with_steps(part, [(v, chosen(step, T), T) for (v, step, T) in part.steps])
end
hasfast_form((_, step, T)) = step isa Apply && fast_form(step.f, T) !== nothing

"""
The part for arguments of any extent. LLVM makes vectors of it where few functions have a fast form;
the code of many would be long and the compiler slow, for what rarely runs: these are called."""
function for_all_arguments(part::RowPart)
    count(hasfast_form, part.steps) <= MOST_FAR_FUNCTIONS && return part
    chosen((v, step, T)) =
        hasfast_form((v, step, T)) ? (v, Apply(NumberMath.called(step.f), step.operands), T) :
        (v, step, T)
    with_steps(part, map(chosen, part.steps))
end

"The steps that the operands of another need, in their order."
function steps_behind(steps, made, operands)
    needed = Set{Int}()
    visit(x) = begin
        k = x isa Symbol ? get(made, x, 0) : 0
        (k == 0 || k in needed) && return
        push!(needed, k)
        step = steps[k][2]
        foreach(visit, step isa Apply ? step.operands : [first(d) for d in step.at.dynamic])
    end
    foreach(visit, operands)
    steps[sort!(collect(needed))]
end

"""
Writes the code that `f(part)` writes, with the faster forms where the arguments of a whole stretch
allow it."""
function write_versions!(f, g::Generator, part::RowPart, checks, variables, from, to)
    isempty(checks) && return f(part)
    exceeded = local!(g, Int32, Int32(0))
    needs = unique(n for c in checks for n in c.needs)
    order = Dict(first(st) => k for (k, st) in enumerate(part.steps))
    sort!(needs; by = n -> order[first(n)])
    vector_loop!(g, to; from = from) do i
        for (v, step, T) in needs
            emit_code!(g, :($v = $(step_expression(step, T, Any[variables..., i]))))
        end
        for (x, limit) in unique((c.operands, c.limit) for c in checks)
            emit_code!(g, :($exceeded = $exceeded | $(exceeds)($limit, $(x...))))
        end
    end
    forms = Dict{Symbol,Any}(c.step => c.fast for c in checks)
    assumed = with_steps(part,
        [(v, haskey(forms, v) ? Apply(forms[v], st.operands) : st, T) for (v, st, T) in part.steps])
    fast, slow = block(() -> f(assumed), g), block(() -> f(for_all_arguments(part)), g)
    emit_code!(g, Expr(:if, :($exceeded === $(Int32(0))), fast, slow))
end
@inline exceeds(limit, x::Vararg{Any,N}) where {N} =
    ifelse(NumberMath.extent(x...) <= limit, Int32(0), Int32(1))

# ---- quotients by what is the same along a row

"""
Writes the code that `f(part)` writes for a row, with products in the place of quotients by numbers
that are the same for all of the row, where all of these have a reciprocal. XLA does not look: its
quotients by subnormal numbers are infinite."""
function by_reciprocals!(f, g::Generator, part::RowPart)
    made = Set{Symbol}(v for (v, _, _) in part.steps)
    divides((_, step, T)) =
        step isa Apply && step.f === quotient && T in (Float32, Float64) &&
        !(step.operands[2] in made)
    divisors = unique((st.operands[2], T) for (_, st, T) in filter(divides, part.steps))
    (isempty(divisors) || length(part.inner) < SHORTEST_BY_RECIPROCAL) && return f(part)
    reciprocals =
        Dict((d, T) => local!(g, T, :($(quotient)($(one(T)), $d))) for (d, T) in divisors)
    multiplied((v, step, T)) =
        (v, Apply(by_reciprocal, Any[step.operands..., reciprocals[(step.operands[2], T)]]), T)
    products = with_steps(part, [divides(s) ? multiplied(s) : s for s in part.steps])
    fast, slow = block(() -> f(products), g), block(() -> f(part), g)
    exist = foldl((a, b) -> :($a & $b), [:($(isordinary)($r)) for r in values(reciprocals)])
    emit_code!(g, Expr(:if, exist, fast, slow))
end

"""
`x / d` by `r`, the rounded `1 / d`, to half a unit in the last place or hardly more: `x * r` alone
has the error of r, which all of a row would share, and its sum show. (Markstein 1990, Computation
of elementary functions on the IBM RISC System/6000 processor.)"""
@inline function by_reciprocal(x, d, r)
    q = x * r
    refined = muladd(muladd(-q, d, x), r, q)
    ifelse(refined == refined, refined, q)      # infinite quotients have no remainder
end

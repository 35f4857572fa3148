# A call, or a derivative, on addresses: once, or for each item of a batch.

"An operand or a result: of each item in the batch an array of its own, or one that all share."
struct Port{T,N}
    size::NTuple{N,Int}
    batched::Bool
end
Port(s::Spec{T,N}, batched::Bool) where {T,N} = Port{T,N}(s.size, batched)

function memory(p::Port{T,N}, address::UInt, item::Int)::Array{T,N} where {T,N}
    count = prod(p.size)
    count == 0 && return Array{T,N}(undef, p.size)
    unsafe_wrap(Array, Ptr{T}(address + (p.batched ? item * count * sizeof(T) : 0)), p.size)
end

struct Runner{C,I,O}
    what::C
    operands::I
    results::O
    batch::Int
    settled::Base.RefValue{Bool}
end
function Runner(what, batch::Union{Nothing,Int}, batched)
    operands = Tuple(Port(s, b) for (s, b) in zip(what.inputs, batched))
    results = Tuple(Port(s, batch !== nothing) for s in what.outputs)
    Runner(what, operands, results, something(batch, 1),
        Ref(!(what isa Union{Derivative,ByBackend})))
end

"Runs on the memory at these addresses."
run!(r::Runner, operands::Tuple, results::Tuple) =
    compiling(() -> each_item!(r, operands, results), r)

function each_item!(r::Runner, operands::Tuple, results::Tuple)
    for item in 0:r.batch-1
        execute!(r.what, each((p, a) -> memory(p, a, item), r.results, results),
            each((p, a) -> memory(p, a, item), r.operands, operands))
    end
    r.settled[] = true
    nothing
end

# Enzyme's compiler is not made for several threads at once. It runs ahead of the first call; but
# code whose types are not inferred is compiled while it runs, so a derivative's first run is alone
# as well.
const COMPILER = ReentrantLock()
compiling(work, r::Runner) = r.settled[] ? work() : lock(work, COMPILER)
compiling(work, r::Runner{<:Derivative}) =
    by_enzyme(() -> r.settled[] ? work() : lock(work, COMPILER))

"What was made for Python, by number; kept as long as the process lives, since XLA may call it."
const RUNNERS = Runner[]

function make_runner(d::Description)
    batch = d["batch"] == "-" ? nothing : parse(Int, d["batch"])
    push!(RUNNERS, Runner(described(d), batch, [c == '1' for c in d["batched"][2:end]]))
    length(RUNNERS)
end

run_numbered!(k::Int, operands, results) = run!(RUNNERS[k], Tuple(operands), Tuple(results))

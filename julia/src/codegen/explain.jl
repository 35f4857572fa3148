# What the compiler did with a Program, for people who wonder why its kernel is slow.

const REASONS = Dict(
    :result => "a result",
    :needed_whole => "needed whole by",
    :read_often => "each element would be computed more than once by",
    :read_in_turn => "computed in vectors, where one element after the other is read by",
    :expensive => "expensive, and read by several equations, not element by element",
    :shared => "read by several loop nests",
    :overwritten => "a part, read afterwards, of the array that is updated by",
    :long_chain => "the chain of equations behind it is long",
)

"""
    explain(program) -> String

Compiles a Program and tells what was done: the stages of the compiler with their times, then the
plan. Of each loop nest the equations that it computes, by the user's source lines, what it reads
and writes in a call (in a loop, in a trip), and into how many chunks it is cut for threads; of each
array that could have been computed where it is read, why it is in memory. Throws what `compile`
throws."""
explain(p::Program) = naming_refused(() -> explanation(p), p)
function explanation(p::Program)
    notes, times = PlanNotes(), Tuple{Symbol,Float64,String}[]
    function run_pass(pass, q)
        timed!(times, pass.name, pass.run, q;
            remark = y -> "$(count_equations(q)) → $(count_equations(y)) equations")
    end
    function run_stage(name, stage, x)
        name === :prepare && return run_passes(NATIVE_PASSES, x, run_pass)
        timed!(times, name, name === :lower ? q -> lower(q; notes = notes) : stage, x)
    end
    definitions, workspace = kernel_code(run_stage, p)
    timed!(times, :machine_code, load_code, definitions;
        remark = _ -> counted(length(definitions), "function"))
    sprint() do io
        println(io, p.name, ": ", amount(workspace), " of workspace, compiled in ",
            milliseconds(sum(t[2] for t in times)))
        for (stage, seconds, remark) in times
            println(io,
                rstrip(string("  ", rpad(stage, 18), lpad(milliseconds(seconds), 9), "  ", remark)))
        end
        println(io)
        write_plan(io, notes.entries)
    end
end

"f(x), whose time is added to the list; `remark(y)` is what there is to say of the result."
function timed!(times, name, f, x; remark = y -> "")
    start = time_ns()
    y = f(x)
    seconds = (time_ns() - start) / 1e9
    push!(times, (name, seconds, remark(y)))
    y
end
milliseconds(seconds) =
    string(round(1000seconds; digits = seconds < 0.01 ? 1 : 0) |> trimmed, " ms")
trimmed(x) = isinteger(x) ? string(Int(x)) : string(x)
counted(n, what) = "$n $what$(n == 1 ? "" : "s")"
amount(n) =
    n < 1024 ? "$n B" :
    n < 1024^2 ? "$(trimmed(round(n / 1024; digits = 1))) KiB" :
    "$(trimmed(round(n / 1024^2; digits = 1))) MiB"
type_text(a::Atom) = sprint(write_type, aval(a))

# ---- the plan

function write_plan(io, entries)
    plans, k = Plan[], 1
    while k <= length(entries)
        depth, entry = entries[k]
        resize!(plans, min(length(plans), entry isa Plan ? depth : depth + 1))
        if entry isa Plan
            push!(plans, entry)
            write_memory(io, entry, depth)
            k += 1
        elseif entry isa ScalarStage
            stop = k
            while stop < length(entries) && entries[stop+1][2] isa ScalarStage
                stop += 1
            end
            indented(io, depth, counted(stop - k + 1, "number"))
            write_sources(io, depth + 1, [x.equation for (_, x) in entries[k:stop]])
            k = stop + 1
        else
            loops = LoopNote[]
            while k < length(entries) && entries[k+1][2] isa LoopNote
                k += 1
                push!(loops, entries[k][2])
            end
            entry isa LoopNote || write_stage(io, entry, last(plans), loops, depth)
            k += 1
        end
    end
end

indented(io, depth, text) = println(io, "  "^depth, text)

function write_memory(io, plan::Plan, depth)
    kept = sort!(collect(plan.memory); by = pair -> -bytes(aval(pair[1])))
    for (v, reason) in kept
        haskey(plan.producer, v) && isfusable(plan.producer[v].op, plan.producer[v]) &&
            !isscalar(v) || continue
        asks = reason.by === nothing ? "" : " " * told(reason.by)
        indented(
            io,
            depth,
            "array $(type_text(v)), $(amount(bytes(aval(v)))), of " *
            "$(told(plan.producer[v])): $(REASONS[reason.kind])$asks"
        )
    end
end

function write_stage(io, stage::NestStage, plan, loops, depth)
    made, leaves = fused_equations(stage, plan)
    chunks = reduce(max, Int[l.chunks for l in loops]; init = 1)
    how = chunks > 1 ? ", in $chunks chunks for threads" : ""
    indented(
        io,
        depth,
        "loop nest $(join(stage.domain, '×'))$how: reads $(traffic(leaves)), " *
        "writes $(traffic(v for (v, _) in stage.roots))"
    )
    write_sources(io, depth + 1, made)
end
function write_stage(io, stage::OwnStage, plan, loops, depth)
    e = stage.equation
    results = join((type_text(v) for v in e.outputs), ", ")
    trips = e.op isa Scan ? ", $(e[:length]) trips" : ""
    indented(
        io,
        depth,
        "$(told(e))$trips → $results: reads " *
        "$(traffic(unique(a for a in e.inputs if a isa Var))), " *
        "writes $(traffic(e.outputs))"
    )
end

traffic(atoms) = amount(sum(Int[bytes(aval(a)) for a in atoms]))
told(e::Equation) = isempty(e.source) ? string(name(e.op)) : "$(name(e.op)) ($(e.source))"

"""
The equations whose elements a nest computes, in the order of the operands, and the arrays in
memory that it reads."""
function fused_equations(stage::NestStage, plan::Plan)
    made, leaves, seen = Equation[], Var[], VarSet()
    function visit(a)
        a isa Var && !(a in seen) || return
        push!(seen, a)
        if isvirtual(plan.memory, plan.producer, a)
            foreach(visit, plan.producer[a].inputs)
            push!(made, plan.producer[a])
        else
            push!(leaves, a)
        end
    end
    own = VarSet(v for (v, _) in stage.roots)
    for (_, e) in stage.roots
        foreach(visit, e.inputs)
        push!(made, e)
    end
    unique(made), filter(v -> !(v in own), leaves)
end

"One line for each of the user's, with what is computed of it."
function write_sources(io, depth, equations)
    lines, order = Dict{String,Vector{String}}(), String[]
    for e in equations
        haskey(lines, e.source) || push!(order, e.source)
        push!(get!(() -> String[], lines, e.source), string(name(e.op)))
    end
    for source in order
        indented(io, depth,
            string(isempty(source) ? "(no source)" : source, ": ", run_lengths(lines[source])))
    end
end

"`mul mul add` as `mul×2 add`."
function run_lengths(words)
    parts, k = String[], 1
    while k <= length(words)
        n =
            something(findfirst(!=(words[k]), view(words, k:length(words))),
                length(words) - k + 2) - 1
        push!(parts, n == 1 ? words[k] : "$(words[k])×$n")
        k += n
    end
    join(parts, " ")
end

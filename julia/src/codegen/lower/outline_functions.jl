# What runs on several threads, and what is too long for one function, become
# functions of their own.

statements(ex) = 1
statements(ex::Expr) =
    ex.head in (:block, :while, :if) ? sum(Int[statements(a) for a in ex.args]) : 1

"The variables an expression mentions, and those it sets."
function mentioned!(used::Set{Symbol}, set::Set{Symbol}, ex)
    ex isa Symbol && push!(used, ex)
    ex isa Expr || return
    ex.head === :(=) && push!(set, ex.args[1])
    foreach(a -> mentioned!(used, set, a), ex.args)
end

"""
A part of the code that becomes a function, with the variables that it mentions, those that it sets,
and those that it sets in any case, not only in a branch or a loop: others may be undefined at its
end."""
struct Section
    code::Vector{Any}
    used::Set{Symbol}
    set::Set{Symbol}
    defined::Set{Symbol}
end
function Section(code)
    used, set, defined = Set{Symbol}(), Set{Symbol}(), Set{Symbol}()
    foreach(ex -> mentioned!(used, set, ex), code)
    foreach(ex -> defined!(defined, ex), code)
    Section(code, used, set, defined)
end
defined!(defined, ex) = nothing
function defined!(defined, ex::Expr)
    ex.head === :(=) && push!(defined, ex.args[1])
    ex.head === :block && foreach(a -> defined!(defined, a), ex.args)
end

function sections(code)
    parts, current, length_ = Section[], Any[], 0
    cut() = isempty(current) || (push!(parts, Section(current)); current = Any[]; length_ = 0)
    for ex in code
        n = statements(ex)
        length_ + n > LONGEST_FUNCTION && cut()
        push!(current, ex)
        length_ += n
    end
    cut()
    parts
end

"The code, in which what several threads run is functions of their own."
function outline_threads(k::KernelCode)
    slots = widest_parallel(k.code, k.generator.types)
    code = Any[threads_lowered!(k.definitions, ex, k.generator, k.name) for ex in k.code]
    with(k; code = code, slots = slots)
end

"The code, in which stretches of what is too long for one function are functions of their own."
function outline_functions(k::KernelCode)
    parts = sections(k.code)
    length(parts) > 1 || return k
    calls, crossing = section_calls!(k.definitions, parts, k.generator.types, k.slots, k.name)
    with(k; code = calls, slots = k.slots + crossing)
end

"""
Variables in the order in which they were made, v9 before v10. That of a loop's carried values
decides which of them LLVM puts into vectors together."""
in_order(variables) = sort!(collect(Symbol, variables); by = v -> (length(string(v)), v))

slot_pointer(v, k, types) =
    :($(Core.Intrinsics.bitcast)($(Ptr{types[v]}),
        $(Core.Intrinsics.add_int)($(Core.Intrinsics.bitcast)(UInt, $CONTEXT),
            $(UInt(SLOT * (k - 1))))))
get_slot(v, k, types) = :($v = $(Core.Intrinsics.pointerref)($(slot_pointer(v, k, types)), 1, 1))
put_slot(v, k, types) = :($(Core.Intrinsics.pointerset)($(slot_pointer(v, k, types)), $v, 1, 1))

# ---- threads

"What a stretch for several threads needs of the code around it."
function outer_variables(p::Parallel, types)
    part = Section(Any[p.body])
    in_order(v for v in part.used if haskey(types, v) && !(v in part.set) && v !== p.index)
end
widest_parallel(ex, types) = 0
widest_parallel(p::Parallel, types) = length(outer_variables(p, types))
widest_parallel(ex::Expr, types) = widest_parallel(ex.args, types)
widest_parallel(code::Vector{Any}, types) =
    reduce(max, Int[widest_parallel(ex, types) for ex in code]; init = 0)

"Makes functions of the stretches for several threads, and calls of these in their place."
threads_lowered!(definitions, ex, g, name) = ex
threads_lowered!(definitions, ex::Expr, g, name) =
    !holds_parallel(ex) ? ex :
    Expr(ex.head, (threads_lowered!(definitions, a, g, name) for a in ex.args)...)
function threads_lowered!(definitions, p::Parallel, g, name)
    f, needs = Symbol(name, :_threads_, length(definitions) + 1), outer_variables(p, g.types)
    push!(definitions, :(function $f($(p.index)::$Int, $CONTEXT::$(Ptr{UInt8}))
        $((get_slot(v, k, g.types) for (k, v) in enumerate(needs))...)
        $(p.body)
        nothing
    end))
    Expr(:block, (put_slot(v, k, g.types) for (k, v) in enumerate(needs))...,
        :($(parallel_for)(pool, $(p.chunks), $(FunctionPointer(f)), convert(Ptr{Cvoid}, $CONTEXT),
            $(Int(p.falling)))))
end
holds_parallel(ex) = ex isa Parallel || (ex isa Expr && any(holds_parallel, ex.args))

# ---- length

"""
Makes functions of the sections, and gives their calls and the number of slots that they use, beyond
the first `base`."""
function section_calls!(definitions, parts, types, base, name)
    before, crossing = Set{Symbol}(first.(ARGUMENTS)), Symbol[]
    for part in parts
        append!(crossing, in_order(v for v in part.used if v in before && !(v in crossing)))
        union!(before, part.defined)
    end
    slot = Dict(v => base + k for (k, v) in enumerate(crossing))
    calls = Any[put_slot(v, slot[v], types) for (v, _) in ARGUMENTS if haskey(slot, v)]
    before = Set{Symbol}(first.(ARGUMENTS))
    for (k, part) in enumerate(parts)
        f = Symbol(name, :_part_, k)
        push!(
            definitions,
            :(@noinline function $f($CONTEXT::Ptr{UInt8})
                $(
                    (
                        get_slot(v, slot[v], types) for v in in_order(part.used)
                        if v in before && haskey(slot, v)
                    )...
                )
                $(part.code...)
                $(
                    (
                        put_slot(v, slot[v], types) for v in in_order(part.set)
                        if haskey(slot, v) && (v in before || v in part.defined)
                    )...
                )
                nothing
            end)
        )
        push!(calls, :($f($CONTEXT)))
        union!(before, part.defined)
    end
    calls, max(length(crossing), 1)
end

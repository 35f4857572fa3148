# From code to functions: what runs on several threads, and what is too long for one function, become functions of their own.

"A stretch of code run once for each value of `index` in 0 … chunks - 1, in any order and on several threads."
struct Parallel
    index::Symbol
    chunks::Int
    body::Expr
end

# The compiler's time grows faster than a function's length.
const LONGEST_FUNCTION = 300

statements(ex) = 1
statements(ex::Expr) = ex.head in (:block, :while, :if) ? sum(Int[statements(a) for a in ex.args]) : 1
statements(p::Parallel) = statements(p.body)

"The variables an expression mentions, and those it sets."
function mentioned!(used::Set{Symbol}, set::Set{Symbol}, ex)
    ex isa Symbol && push!(used, ex)
    ex isa Parallel && mentioned!(used, set, ex.body)
    ex isa Expr || return
    ex.head === :(=) && push!(set, ex.args[1])
    foreach(a -> mentioned!(used, set, a), ex.args)
end

"A part of the code that becomes a function, with the variables that it takes from earlier parts and hands to later ones."
struct Section
    code::Vector{Any}
    used::Set{Symbol}
    set::Set{Symbol}
end
function Section(code)
    used, set = Set{Symbol}(), Set{Symbol}()
    foreach(ex -> mentioned!(used, set, ex), code)
    Section(code, used, set)
end

function sections(code)
    parts, current, length_ = Section[], Any[], 0
    cut() = isempty(current) || (push!(parts, Section(current)); current = Any[]; length_ = 0)
    for ex in code
        n = statements(ex)
        (ex isa Parallel || length_ + n > LONGEST_FUNCTION) && cut()
        push!(current, ex)
        length_ += n
        ex isa Parallel && cut()
    end
    cut()
    parts
end

const ARGUMENTS = (:operands, :results, :pool)
const ARGUMENT_TYPES = (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid})
const CONTEXT, SLOT = :context, 16

"""
    assembled(g) -> (definitions, main, workspace)

The function expressions to define in turn, the last being the kernel; and the bytes of workspace."""
function assembled(g::Generator, name)
    parts = sections(g.code)
    if length(parts) <= 1 && !any(ex -> ex isa Parallel, g.code)
        return Any[kernel_function(name, g.code)], g.arena.peak
    end
    for (v, T) in zip(ARGUMENTS, ARGUMENT_TYPES); g.types[v] = T; end
    set_before, crossing = Set{Symbol}(ARGUMENTS), Symbol[]
    for part in parts
        append!(crossing, sort!([v for v in part.used if v in set_before && !(v in crossing)]))
        union!(set_before, part.set)
    end
    place = Dict(v => (k - 1) * SLOT for (k, v) in enumerate(crossing))
    base = g.arena.peak
    calls, definitions = Any[], Any[]
    set_before = Set{Symbol}(ARGUMENTS)
    for (k, part) in enumerate(parts)
        f = Symbol(name, :_, k)
        push!(definitions, section_function(f, part, set_before, place, g.types))
        push!(calls, section_call(f, part))
        union!(set_before, part.set)
    end
    head = Any[:($CONTEXT = $(buffer_data)(UInt8, results, $(g.results + 1)) + $base)]
    append!(head, [put_slot(v, place, g.types) for v in ARGUMENTS if haskey(place, v)])
    push!(definitions, kernel_function(name, vcat(head, calls)))
    definitions, base + max(length(crossing), 1) * SLOT
end

kernel_function(name, code) = :(function $name(operands::Ptr{Ptr{Cvoid}}, results::Ptr{Ptr{Cvoid}}, pool::Ptr{Cvoid})
    $(code...)
    nothing
end)

section_call(f, part::Section) = section_call(f, part.code[1], part)
section_call(f, ex, part) = :($f($CONTEXT))
section_call(f, p::Parallel, part) = :($(parallel_for)(pool, $(p.chunks), $(Symbol(f, :_pointer)), convert(Ptr{Cvoid}, $CONTEXT)))

function section_function(f, part::Section, set_before, place, types)
    takes = [get_slot(v, place, types) for v in sort!(collect(part.used)) if v in set_before && haskey(place, v)]
    gives = [put_slot(v, place, types) for v in sort!(collect(part.set)) if haskey(place, v)]
    p = part.code[1]
    p isa Parallel && return Expr(:toplevel,
        :(function $f($(p.index)::Int, $CONTEXT::Ptr{UInt8})
            $(takes...)
            $(p.body)
            nothing
        end),
        :(const $(Symbol(f, :_pointer)) = @cfunction($f, Cvoid, (Int, Ptr{UInt8}))))
    :(@noinline function $f($CONTEXT::Ptr{UInt8})
        $(takes...)
        $(part.code...)
        $(gives...)
        nothing
    end)
end

slot_pointer(v, place, types) = :(convert($(Ptr{types[v]}), $CONTEXT + $(place[v])))
get_slot(v, place, types) = :($v = $(unsafe_load)($(slot_pointer(v, place, types))))
put_slot(v, place, types) = :($(unsafe_store!)($(slot_pointer(v, place, types)), $v))

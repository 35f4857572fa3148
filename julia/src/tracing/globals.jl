# What the user's module holds: a function that changes it would do so once, when it is traced.

"A global that the traced code has changed."
struct GlobalChanged <: JaxprADError
    message::String
    source::String
end
Base.showerror(io::IO, e::GlobalChanged) = print(io, e.message, at_source(e.source))

"`work()`; refuses if it changes a global of the module or of one inside."
function unchanged_globals(work, m::Module)
    before = Pair[place => (value, copied(value)) for (place, value) in globals_of(m)]
    result = work()
    now = Dict{Any,Any}(globals_of(m))
    for (place, (value, copy)) in before
        haskey(now, place) && now[place] === value && same_state(value, copy) || throw(
            GlobalChanged(
                "the function changes the global $(last(place)), which would happen once, when " *
                "it is traced, and not at each call: make it an argument and a result", "")
        )
    end
    result
end

"The globals, as `(module, name) => value`, of a module of the user's and those inside of it."
function globals_of(m::Module)
    found = Pair[]
    isusers(m) && collect_globals!(found, m)
    found
end
function collect_globals!(found, m::Module)
    for n in names(m; all = true)
        isdefined(m, n) && !startswith(string(n), '#') || continue
        value = getfield(m, n)
        if value isa Module
            value !== m && parentmodule(value) === m && isusers(value) &&
                collect_globals!(found, value)
        elseif !(value isa Union{Function,Type})
            push!(found, (m, n) => value)
        end
    end
end

"Whether a module is Main or of a source that was given to julia_function, and of no package."
isusers(m::Module) = Base.moduleroot(m) === Main

"What a value was, or the value itself where it is of no kind that is looked into."
copied(x) = isusers(parentmodule(typeof(x))) ? deep_copy(x) : x
copied(x::Union{AbstractArray,AbstractDict,AbstractSet,Ref,Tuple,NamedTuple}) = deep_copy(x)
deep_copy(x) =
    try
        deepcopy(x)
    catch e
        e isa InterruptException && rethrow()
        x
    end

"Whether a value is what it was when the copy was made."
function same_state(x, copy)
    x === copy && return true
    typeof(x) === typeof(copy) || return false
    try
        same_parts(x, copy)
    catch e
        e isa InterruptException && rethrow()
        false
    end
end
same_parts(x, copy) =
    isusers(parentmodule(typeof(x))) ?
    all(k -> same_state(getfield(x, k), getfield(copy, k)), 1:fieldcount(typeof(x))) :
    x === copy || isequal(x, copy)
# What an earlier trace has left in a global, and this one has not touched.
function same_parts(x::TracedArray, copy::TracedArray)
    m, n = x.memory, copy.memory
    m.recording === n.recording && m.value === n.value && m.width == n.width && m.pieces == n.pieces
end
same_parts(x::Ref, copy) = same_state(x[], copy[])
same_parts(x::Union{Tuple,NamedTuple}, copy) = all(map(same_state, Tuple(x), Tuple(copy)))
same_parts(x::AbstractArray, copy) =
    size(x) == size(copy) &&
    (isbitstype(eltype(x)) ? isequal(x, copy) : all(same_state(v, w) for (v, w) in zip(x, copy)))
same_parts(x::AbstractDict, copy) =
    length(x) == length(copy) && all(haskey(copy, k) && same_state(v, copy[k]) for (k, v) in x)

# What is made of bodies, once. Rules of loops and branches ask for it several times, to find which
# results have tangents or are known, and each time those of the loops in them do: without this the
# time would be exponential in the depth of nesting.

"""
    remembered(make, kind, program, arguments...)

What `make()` gives for the Program and arguments, made once during the outermost such call of its
kind. Nobody may write on it."""
function remembered(make, kind::Symbol, p::Program, arguments...)
    memory = get(task_local_storage(), kind, nothing)
    memory === nothing &&
        return task_local_storage(() -> remembered(make, kind, p, arguments...), kind,
            IdDict{Program,Dict{Any,Any}}())
    get!(make, get!(() -> Dict{Any,Any}(), memory, p), arguments)
end

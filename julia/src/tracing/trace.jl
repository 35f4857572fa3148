# Julia functions as Programs.

"""
A function that was traced: `program` takes `captured`, then the leaves of the arguments, and gives
the leaves of the result. Calling it runs the Program, or writes it into the trace under way.
"""
struct TracedFunction
    program::Program
    captured::Vector{Any}
    names::Vector{String}      # of the arguments
    arguments::Structure
    result::Structure
end
Base.show(io::IO, t::TracedFunction) = print(io, program_text(t.program))

"""
    trace(f, arguments...) -> TracedFunction

Runs `f` on traced arrays and numbers of the arguments' types and sizes, and records the operations
as a Program, with the lines of the code they come from. Arguments are numbers and arrays, also in
tuples, named tuples and structs; floating-point numbers and arrays are traced, while integers,
Bools and all else are known. What is known decides control flow, and loops over it are unrolled,
then rolled up again where they repeat themselves.

An array of size (m, n) is an array of shape (n, m) in the Program: the same memory.

    julia> t = trace((x, a) -> sum(sin.(a .* x)), [1.0, 2.0], 3.0);

    julia> t([1.0, 2.0], 3.0) ≈ sin(3) + sin(6)
    true
"""
trace(@nospecialize(f), @nospecialize(arguments...)) = trace_here(f, recording(), arguments)

"The same, of a function that is run once, where it is traced."
trace_once(@nospecialize(f), @nospecialize(arguments...)) =
    trace_here(f, recording(), arguments, flatten; kept = false)

"A function of a loop's state or a side of a branch."
trace_body(@nospecialize(f), @nospecialize(arguments...)) =
    trace_here(f, open_recording(), arguments, flatten_state)

# Here and in the transforms nothing is compiled for each function, which has a type of its own, nor
# for each type of its arguments.
function trace_here(@nospecialize(f), outer, @nospecialize(arguments), flattened = flatten;
    kept = true)
    leaves, structure = flatten(arguments)
    inputs = Var[Var(leaf_type(x)) for x in leaves]
    r = OpenTrace(outer, kept ? random_state() : outer === nothing ? nothing : outer.random)
    drawn_from = kept ? generators(f, arguments) : Pair[]
    held = Ref{Any}(f)
    outputs, result = record(r) do _
        given = Any[traced_leaf(kind, v) for (kind, v) in zip(leaf_kinds(structure), inputs)]
        run_traced(held[], assembled(structure, given), flattened)
    end
    check_random(r, user_line())
    check_generators(drawn_from)
    p = Program(program_name(f), vcat(r.inputs, inputs), r.builder.equations, outputs)
    TracedFunction(merge_pieces(reroll_loops(dce(p))), r.captured,
        argument_names(f, length(arguments)), structure, result)
end
traced_leaf(::NumberLeaf, v) = traced_number(v)
traced_leaf(::ArrayLeaf, v) = traced_array(v)

"The atoms and the structure of the result; exceptions are named, with the line."
function run_traced(@nospecialize(f), @nospecialize(arguments), flattened)
    try
        results, result = flattened(f(arguments...))
        Atom[result_atom(x) for x in results], result
    catch e
        rethrow(named_error(e, user_line(catch_backtrace())))
    end
end
result_atom(x::Number) = atom_here(x)
result_atom(x::AbstractArray) = atom_here(x)

"""
What the only method for so many arguments calls them. Others are x1, x2 ...: of functions with
several methods, with arguments that have no name, or that are taken apart."""
function argument_names(@nospecialize(f), n)
    fitting = [m for m in methods(f) if m.nargs == n + 1 && !m.isva]
    plain = ["x$k" for k in 1:n]
    length(fitting) == 1 || return plain
    names = map(String, Base.method_argnames(only(fitting))[2:end])
    all(name -> occursin(r"^[A-Za-z_]\w*$", name), names) && allunique(names) ? names : plain
end
argument_names(t::TracedFunction, n) = t.names

program_name(@nospecialize(f)) = "f"
function program_name(@nospecialize(f::Function))
    n = string(nameof(f))
    occursin(r"^[A-Za-z_][A-Za-z0-9_]*$", n) ? n : "f"
end

# ---- running

(t::TracedFunction)(@nospecialize(arguments...)) = call_traced(t, arguments)

function call_traced(t::TracedFunction, @nospecialize(arguments))
    leaves, structure = flatten(arguments)
    check_arguments(t, leaves, structure)
    results = run_program(t.program, vcat(t.captured, leaves))
    assembled(t.result, leaf_results(t.result, results))
end
function check_arguments(t::TracedFunction, leaves, structure)
    structure == t.arguments || throw(
        ArgumentError("the arguments are not of the structure that was traced"))
    check_types(leaves, map(aval, t.program.inputs[length(t.captured)+1:end]))
end
check_types(leaves, types) =
    map(leaf_type, leaves) == types || throw(
        DimensionMismatch("values of types $(join(map(leaf_type, leaves), ", ")) " *
                          "where $(join(types, ", ")) are expected")
    )
leaf_results(s::Structure, results) = Any[
    istraced(y) ? y : from_array(kind, y)
    for (kind, y) in zip(leaf_kinds(s), results)
]

"""
    run_program(program, x) -> results

The results for traced values, written into the trace under way, or for arrays and numbers, computed
by the evaluator. `x` may hold what a trace has captured."""
function run_program(p::Program, x)
    any(v -> istraced(v) || v isa Atom, x) || return evaluate(p, Any[plain_value(v) for v in x])
    r = open_recording()
    atoms = Atom[value_atom(r, v) for v in x]
    r.builder.source = user_line()
    Any[isscalar(a) ? traced_number(a) : traced_array(a) for a in inline!(r.builder, p, atoms)]
end
"Refuses numbers that stand for the elements of an array: a Program of numbers takes one at a time."
refuse_lanes(x, what) =
    x isa TracedNumber && !isscalar(x.atom) && untraceable(
        "$what cannot be broadcast within a trace: over the elements of a vector `vmap(f)(x)` goes")
value_atom(r, a::Atom) = a
value_atom(r, x::CapturedArray) = captured_array(r, x.copy)
value_atom(r, x) = atom_here(x)
plain_value(x::CapturedArray) = x.copy
plain_value(x) = as_array(x)

# Every equation's declared types against the shape rules.

"""
What shape rules run into where attributes are of another kind than theirs: lists of lists, words
for numbers, bodies for flags."""
const IllFormed = Union{MethodError,TypeError,BoundsError,ArgumentError,KeyError,InexactError,
    DimensionMismatch,DivideError,OverflowError,ErrorException}

"""
    typecheck(program) -> Program

The Program itself; throws `ProgramTypeError` naming the equation whose types, scoping or scalars
are wrong. `place(equation)` is what the message begins with."""
function typecheck(p::Program, place = e -> "")
    bound = VarSet(p.inputs)
    length(bound) == length(p.inputs) ||
        throw(ProgramTypeError("$(p.name): an input appears twice"))
    for (k, e) in enumerate(p.equations)
        check_cancelled()
        explain(message) =
            throw(
                ProgramTypeError(
                    "$(place(e))$(p.name), equation $k ($(name(e.op))): " *
                    "$message$(at_source(e.source))"
                )
            )
        all(a -> a isa Literal || a in bound, e.inputs) ||
            explain("an operand is used before it is bound")
        any(v -> v in bound, e.outputs) && explain("a result is bound twice")
        foreach(q -> typecheck(q, place), bodies(e))
        isempty(misfits(e)) ||
            explain("the attribute $(misfits(e)[1]) cannot have such a value")
        iselementwise(e.op) && check_scalars(e, explain)
        declared = TensorType[aval(v) for v in e.outputs]
        inferred = try
            infer(e.op, TensorType[aval(a) for a in e.inputs], e.attrs)
        catch err
            err isa ProgramTypeError ? explain(err.message) :
            err isa IllFormed ?
            explain("does not take such operands and attributes ($(nameof(typeof(err))))") :
            rethrow()
        end
        declared == inferred ||
            explain(
                "declares $(join(map(type_text, declared), ", ")), its operands give " *
                "$(join(map(type_text, inferred), ", "))"
            )
        union!(bound, e.outputs)
    end
    all(a -> a isa Literal || a in bound, p.outputs) ||
        throw(ProgramTypeError("$(p.name): a result is not bound"))
    p
end

check_scalars(e, explain) =
    any(v -> ndims(aval(v)) > 0, e.outputs) && any(a -> a isa Var && isempty(shape(a)), e.inputs) &&
    explain("a rank-0 variable is an operand together with arrays; broadcast it")

# Every equation's declared types against the shape rules.

"""
    typecheck(program) -> Program

The Program itself; throws `ProgramTypeError` naming the equation whose types, scoping or scalars
are wrong."""
function typecheck(p::Program)
    bound = VarSet(p.inputs)
    length(bound) == length(p.inputs) ||
        throw(ProgramTypeError("$(p.name): an input appears twice"))
    for (k, e) in enumerate(p.equations)
        check_cancelled()
        explain(message) =
            throw(
                ProgramTypeError(
                    "$(p.name), equation $k ($(name(e.op))): " *
                    "$message$(at_source(e.source))"
                )
            )
        all(a -> a isa Literal || a in bound, e.inputs) ||
            explain("an operand is used before it is bound")
        any(v -> v in bound, e.outputs) && explain("a result is bound twice")
        foreach(typecheck, bodies(e))
        iselementwise(e.op) && check_scalars(e, explain)
        declared = TensorType[aval(v) for v in e.outputs]
        inferred = try
            infer(e.op, TensorType[aval(a) for a in e.inputs], e.attrs)
        catch err
            err isa ProgramTypeError ? explain(err.message) : rethrow()
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
    explain("a rank-0 variable stands beside arrays; broadcast it")

# What shape rules ask of nested Programs.

results_of(p::Program) = TensorType[aval(a) for a in p.outputs]

"Throws unless the operands fit a body's inputs."
function check_operands(op, body::Program, types)
    expected = TensorType[aval(v) for v in body.inputs]
    expected == types ||
        infer_error(
            op,
            "the body takes ($(join(map(type_text, expected), ", "))), the operands " *
            "are ($(join(map(type_text, types), ", ")))"
        )
end

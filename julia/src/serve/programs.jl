# The requests whose answers are Programs.

mask(text) = Bool[c == '1' for c in SubString(text, 2)]
checked(body) = one_program(checked_programs(body))
answer_text(arguments, programs::Program...) =
    program_text(("optimize" in arguments ? map(optimize, programs) : programs)...)

answer(::Val{:normalize}, body, arguments) = program_text(checked_programs(body)...)
answer(::Val{:check}, body, arguments) = (checked_programs(body); "")
answer(::Val{:jvp}, body, arguments) =
    answer_text(arguments, jvp(checked(body), mask(arguments[1])))
answer(::Val{:optimize}, body, arguments) = program_text(optimize(checked(body)))
answer(::Val{:transpose}, body, arguments) =
    answer_text(arguments, transpose(checked(body), mask(arguments[1]), mask(arguments[2])))
answer(::Val{:vjp}, body, arguments) =
    answer_text(arguments, vjp(checked(body), mask(arguments[1]); value = arguments[2] == "1"))
function answer(::Val{:with_gradient}, body, arguments)
    made = with_gradient(checked(body), mask(arguments[1]))
    made === nothing ? "" : program_text(made)
end
function answer(::Val{:linearize}, body, arguments)
    l = linearized(checked(body), mask(arguments[1]); compact = "compact" in arguments,
        optimized = "optimize" in arguments)
    string(join(Int.(l.hastangent)), " ", l.residuals, "\n", program_text(l.known, l.linear))
end

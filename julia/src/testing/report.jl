# What was found out about a function's derivatives.

"""
One comparison: `kind` of derivative, the argument or part of it along which it was taken (`""` for
values), the relative error, what is allowed, and both numbers in words."""
struct DerivativeCheck
    kind::String
    argument::String
    error::Float64
    allowed::Float64
    details::String
end
passed(c::DerivativeCheck) = c.error <= c.allowed
title(c::DerivativeCheck) = isempty(c.argument) ? c.kind : "$(c.argument): $(c.kind)"

"What is wrong, in words; nothing in `\"\"`."
disagreement(c::DerivativeCheck) = passed(c) ? "" :
    "$(title(c)): $(c.details); off by $(short(c.error)), allowed $(short(c.allowed))"

"All comparisons of a function. `failures(report)` are those that it does not pass."
struct DerivativeReport
    name::String
    checks::Vector{DerivativeCheck}
end
failures(r::DerivativeReport) = filter(!passed, r.checks)

function Base.show(io::IO, r::DerivativeReport)
    wrong, n = length(failures(r)), length(r.checks)
    print(io, "derivatives of ", r.name, ": ",
        wrong == 0 ? "$n comparisons agree" : "$wrong of $n comparisons disagree")
end
function Base.show(io::IO, ::MIME"text/plain", r::DerivativeReport)
    show(io, r)
    width = maximum(c -> textwidth(title(c)), r.checks)
    for c in r.checks
        print(io, "\n  ", rpad(title(c), width), "  ", short(c.error))
        passed(c) || print(io, "  ", c.details)
    end
end
short(x::Number) = string(round(x; sigdigits = 2))

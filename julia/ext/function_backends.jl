# Derivatives of Julia functions that Python calls, by whatever backend the user has named.

using JaxprAD.Functions: ByBackend, Functions, Pullback, Pushforward, distribute!, joined, pick,
    vector_function

function Functions.differentiate!(d::ByBackend{<:Pushforward{C,A}}, results,
    operands::Vararg{AbstractArray}) where {C,A}
    f, point, given, direction = problem(d, Val(A), operands)
    prepared = prepared!(d) do
        DI.prepare_pushforward(f, d.backend, point, (direction,), given)
    end
    found, = DI.pushforward(f, prepared, d.backend, point, (direction,), given)
    distribute!(results, found)
end

# Their cotangents of complex numbers are conjugates of JAX's.
function Functions.differentiate!(d::ByBackend{<:Pullback{C,A}}, results,
    operands::Vararg{AbstractArray}) where {C,A}
    f, point, given, cotangent = problem(d, Val(A), operands)
    ȳ = map(conj, cotangent)
    prepared = prepared!(d) do
        DI.prepare_pullback(f, d.backend, point, (ȳ,), given)
    end
    found, = DI.pullback(f, prepared, d.backend, point, (ȳ,), given)
    distribute!(results, map(conj, found))
end

"The function of a vector, its point, its other arguments, and the direction or cotangent."
function problem(d::ByBackend, active, operands)
    n = length(d.derivative.of.inputs)
    x = operands[1:n]
    vector_function(d.derivative), joined(pick(x, active)), DI.Constant(x),
    joined(operands[n+1:end])
end

function prepared!(prepare, d::ByBackend)
    d.prepared[] === nothing && (d.prepared[] = prepare())
    d.prepared[]
end

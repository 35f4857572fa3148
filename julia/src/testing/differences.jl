# Derivatives by differences: a reference that knows no rule.

const FIRST_STEP, STEPS = 1 / 16, 10

"""
    central_slopes(at) -> slopes

Central differences at 0 of `at`, a function of a step that gives a list of arrays: for each step,
each half of the one before, those of all arrays. Steps that leave the function's domain do not
count."""
function central_slopes(@nospecialize(at))
    slopes = Vector{Any}[]
    for k in 0:STEPS-1
        h = FIRST_STEP / 2^k
        try
            push!(slopes, Any[(wide(u) .- wide(v)) ./ 2h for (u, v) in zip(at(h), at(-h))])
        catch e
            e isa DomainError || rethrow()
            empty!(slopes)
        end
    end
    slopes
end
wide(x::Number) = [x isa Complex ? ComplexF64(x) : Float64(x)]
wide(x::AbstractArray) =
    isempty(x) ? Float64[] : vec(map(v -> v isa Complex ? ComplexF64(v) : Float64(v), x))

"""
    extrapolated(slopes) -> (slope, uncertainty)

The limit of central differences of one array, at steps that halve, by Ridders' method. Their error
is a series in even powers of the step, so that Neville's scheme removes one power after the other.
Of all that it gives the best is what differs least from the two values that it is made of: small
steps are spoilt by rounding, large ones by higher derivatives. By how much it differs is the
uncertainty, which is large where the function is not smooth."""
function extrapolated(slopes)
    best, uncertainty, above = first(slopes), Inf, Any[]
    for slope in slopes
        row = Any[slope]
        for (order, coarser) in enumerate(above)
            finer = row[order] .+ (row[order] .- coarser) ./ (4.0^order - 1)
            apart = max(furthest(finer .- row[order]), furthest(finer .- coarser))
            apart < uncertainty && ((best, uncertainty) = (finer, apart))
            push!(row, finer)
        end
        above = row
    end
    best, uncertainty
end
furthest(x) = isempty(x) ? 0.0 : Float64(maximum(abs, x))

"The derivative of `at` at 0: of each of its arrays the value and its uncertainty."
function difference_quotients(@nospecialize(at))
    slopes = central_slopes(at)
    isempty(slopes) && throw(ArgumentError(
        "the function has no values near the arguments: they are at the edge of its domain"))
    Any[extrapolated(Any[slope[k] for slope in slopes]) for k in eachindex(slopes[1])]
end

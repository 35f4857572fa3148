# linearize = partial_eval ∘ jvp: everything that does not depend on a tangent is known.

"""
A linearization: `known`: (x…) → (y…, r…); `linear`: (r…, ẋ of the active inputs…) → ẏ of the
results marked in `hastangent`.
"""
struct Linearized
    known::Program
    linear::Program
    hastangent::Vector{Bool}
    residuals::Int
end

"""
    linearize(program, active = inexact inputs; compact = false) -> Linearized

Where `compact`, factors are multiplied together (`preaccumulate`), which makes residuals fewer."""
function linearize(p::Program, active::AbstractVector{Bool} = inexact(p.inputs);
    compact::Bool = false)
    j, has = forward(p, active)
    compact && (j = preaccumulate(j, j.inputs[length(p.inputs)+1:end]))
    n, m = length(p.inputs), length(p.outputs)
    # A primal result must be known; a tangent that turned out not to depend on
    # the tangents is zero.
    split = partial_eval(j, Bool[k <= n for k in eachindex(j.inputs)])
    all(split.isknown[1:m]) || error("a primal result depends on a tangent")
    nonzero = .!split.isknown[m+1:end]
    hastangent = copy(has)
    hastangent[findall(has)] .= nonzero
    keep = vcat(1:m, length(split.known.outputs)-split.residuals+1:length(split.known.outputs))
    known = dce(with(split.known; name = p.name, outputs = split.known.outputs[keep]))
    Linearized(known, with(split.unknown; name = string("linear_", p.name)), hastangent,
        split.residuals)
end

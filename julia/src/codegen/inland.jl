# Rows away from the edges of padded arrays: a row asks once whether it is one, and its points need not ask.

"A simpler body, and the positions that must be in 0 … size - 1 for it, the same along a whole row."
struct Inland
    edges::Vector{Tuple{Affine,Int}}
    part::RowPart
end
positions(::Nothing) = Affine[]
positions(x::Inland) = Affine[(a for (a, _) in x.edges)..., positions(x.part)...]
moved(f, ::Nothing, inner) = nothing
moved(f, x::Inland, inner) = Inland([(f(a), size) for (a, size) in x.edges], moved(f, x.part, inner))

"""
The body with one for rows inland, if there are conditions on other axes than the last. `simple()` makes the nest for these rows and its
body. What must hold is what that nest takes to hold: where one condition is taken to hold, there may be more (a padded array in another).
"""
function with_inland(nest::Nest, part::RowPart, simple)
    (isempty(nest.edges) || length(part.inner) == 1 || !isempty(guards(part))) && return part
    inland, body = simple()
    RowPart(part.inner, part.steps, part.stores, part.reduces, Inland(inland.edges, body))
end

"Writes what `f(part)` writes, for the body that the row needs."
write_inland!(f, g::Generator, part::RowPart, variables) = write_inland!(f, g, part, part.inland, variables)
write_inland!(f, g, part, ::Nothing, variables) = f(part)
function write_inland!(f, g, part, x::Inland, variables)
    row = vcat(variables, 0)
    inside = foldl((p, q) -> :($(&)($p, $q)), Any[:($(within_bounds)($(expression(a, row)), $size)) for (a, size) in x.edges])
    simple, general = block(() -> f(x.part), g), block(() -> f(part), g)
    emit_code!(g, Expr(:if, inside, simple, general))
end

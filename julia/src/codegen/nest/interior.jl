# Interior and boundary versions of a row: in the interior of padded arrays its points need not ask
# whether they are inside. A row asks once which it is.

"""
The body with one for interior rows, if there are conditions on other axes than the last. `simple()`
makes the nest for these rows and its body. What must hold is what that nest takes to hold: where
one condition is taken to hold, there may be more (a padded array in another).
"""
function with_interior(nest::Nest, part::RowPart, simple)
    (isempty(nest.edges) || length(part.inner) == 1 || !isempty(fast_paths(part))) && return part
    interior, body = simple()
    RowPart(part.inner, part.steps, part.stores, part.reduces, interior.edges, body)
end

"Writes what `f(part)` writes, for the version that the row needs."
function write_interior!(f, g::Generator, part::RowPart, variables)
    part.interior === nothing && return f(part)
    row = Any[variables..., 0]
    inside = foldl((p, q) -> :($(&)($p, $q)),
        Any[:($(within_bounds)($(expression(a, row)), $size)) for (a, size) in part.edges])
    interior, boundary = block(() -> f(part.interior), g), block(() -> f(part), g)
    emit_code!(g, Expr(:if, inside, interior, boundary))
end

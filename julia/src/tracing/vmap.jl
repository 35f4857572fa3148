# A function over the slices of arrays.

"""
    vmap(f) -> function

`f` of the slices of its arguments along their last dimension, all at once: `vmap(f)(xs, ys)` has
`f(xs[:, k], ys[:, k])` in `[:, k]`. Arrays in tuples, named tuples and structs are sliced too;
numbers are the same for every slice, and so is what `f` closes over.

    julia> vmap(x -> x / sum(x))([1.0 3.0; 3.0 1.0])
    [0.25 0.75; 0.75 0.25]
"""
function vmap(@nospecialize(f))
    held = Ref{Any}(f)      # so that the result has one type for all functions
    function (x...)
        leaves, structure = flatten(x)
        kinds = leaf_kinds(structure)
        sliced = Any[v for (v, kind) in zip(leaves, kinds) if kind isa ArrayLeaf]
        isempty(sliced) && throw(DimensionMismatch("vmap needs an array to slice"))
        scan(nothing, Tuple(sliced)) do _, slices
            parts = Iterators.Stateful(slices)
            given = Any[
                kind isa ArrayLeaf ? popfirst!(parts) : v for (v, kind) in zip(leaves, kinds)
            ]
            nothing, held[](assembled(element_structure(structure), given)...)
        end[2]
    end
end

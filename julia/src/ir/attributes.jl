# What kind of value each attribute has, by its name: shape rules and evaluation rely on it. That a
# value of the kind fits is for the shape rules to say.

"A large constant with its data: the attribute `ref`, where these are at hand."
struct StoredArray
    ref::Symbol
    data::Array
end
Base.:(==)(a::StoredArray, b::StoredArray) = a.ref === b.ref
Base.hash(a::StoredArray, h::UInt) = hash(a.ref, h)

isflag(v) = v isa Bool
isword(v) = v isa Symbol
isreference(v) = v isa Union{Symbol,StoredArray}
isbody(v) = v isa Program
iscount(v) = v isa Integer && !(v isa Bool)
issize(v) = v isa DimExpr || iscount(v)
isnumeral(v) = v isa Real
isnone(v) = v === nothing
islist(fits) = v -> v isa AbstractVector && all(fits, v)
either(fits...) = v -> any(f -> f(v), fits)

const ATTRIBUTE_KINDS = Dict{Symbol,Function}(
    Symbol(attribute) => fits for (fits, names) in [
        isflag => "sorted unique reverse stable left_side lower transpose_a conjugate_a
            unit_diagonal sort_eigenvalues pivoting full_matrices left right vector_derivatives
            vectors compute_uv barrier",
        iscount => "method y exponent_bits mantissa_bits axis num_keys size feature_groups
            batch_groups unroll cond_consts body_consts",
        issize => "dim k length",
        isreference => "ref",
        isword => "dtype mode fft_type select",
        isbody => "body cond call solve matvec",
        islist(iscount) => "dims perm interior strides axes offset_dims collapsed_slice_dims
            start_index_map operand_batching_dims start_indices_batching_dims update_window_dims
            inserted_window_dims scatter_dims_to_operand_dims scatter_indices_batching_dims
            lhs_contract rhs_contract lhs_batch rhs_batch lhs_dilation rhs_dilation lhs_spec
            rhs_spec out_spec base_dilation window_dilation levels",
        islist(issize) => "shape low high start limit sizes slice_sizes fft_lengths window",
        islist(isbody) => "branches passes",
        islist(isnumeral) => "value",
        either(isnumeral, isnone) => "fill_value",
        either(isword, isnone) => "precision",
        either(iscount, isnone) => "bound",
        either(iscount, islist(iscount)) => "consts carry residuals",
        either(isbody, isflag) => "transpose",
        either(isbody, isword) => "jvp fwd bwd",
        either(isbody, isnone) => "vecmat transpose_solve",
    ] for attribute in split(names)
)

"The names of attributes that are of another kind than theirs."
misfits(e::Equation) =
    [key for (key, value) in e.attrs if !get(ATTRIBUTE_KINDS, key, v -> true)(value)]

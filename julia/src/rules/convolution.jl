# conv_general_dilated: y[n, o, p] = Σ over c, k of x[n, c, p·stride + k·dilation - low] · w[o, c,
# k], in groups. Bilinear.
#
# `lhs_spec` lists x's batch axis, feature axis and spatial axes, `rhs_spec` w's axes of output and
# input features and spatial axes, `out_spec` the result's batch, feature and spatial axes. With
# groups, the g-th part of w's output features meets the g-th part of x's features
# (`feature_groups`) or of x's batch (`batch_groups`). As XLA's Conv; no window is turned round.

@primitive Convolution conv_general_dilated(strides, low, high, lhs_dilation, rhs_dilation,
    lhs_spec, rhs_spec, out_spec, feature_groups, batch_groups, dtype, precision)

sizes_at(shape, axes) = shape[axes.+1]
slide(attrs, w_shape) =
    Slide(sizes_at(w_shape, attrs[:rhs_spec][3:end]), attrs[:strides], attrs[:low], attrs[:high],
        attrs[:lhs_dilation], attrs[:rhs_dilation])

function infer(op::Convolution, types, attrs)
    x, w = types
    lhs, rhs, out, feature_groups, batch_groups = (attrs[k]
     for k in (:lhs_spec, :rhs_spec, :out_spec,
        :feature_groups, :batch_groups))
    same_dtypes(op, types)
    all(spec -> sort(spec) == 0:ndims(x)-1 && length(spec) >= 2, (lhs, rhs, out)) &&
        ndims(w) == ndims(x) ||
        infer_error(op, "the axes $lhs, $rhs, $out do not fit $(type_text(x)) and $(type_text(w))")
    batch, features = sizes_at(x.shape, lhs)
    made, taken = sizes_at(w.shape, rhs)
    feature_groups >= 1 && batch_groups >= 1 && min(feature_groups, batch_groups) == 1 &&
        taken * feature_groups == features &&
        divides(batch_groups, batch) && divides(feature_groups * batch_groups, made) ||
        infer_error(
            op,
            "$feature_groups feature groups and $batch_groups batch groups do not " *
            "fit $(type_text(x)) and $(type_text(w))"
        )
    shape = Shape(undef, ndims(x))
    shape[out.+1] = vcat(fld(batch, batch_groups), made,
        places(op, slide(attrs, w.shape), sizes_at(x.shape, lhs[3:end])))
    [TensorType(dtype_named(attrs[:dtype]), shape)]
end
divides(k, n::Dim) = fld(n, k) * k == n

# One matrix product for each group and each position in the window: places and batch × features,
# features × output features.
function evaluate(::Convolution, x, attrs, types)
    T, out = types[1].dtype, Int.(sizes_at(types[1].shape, attrs[:out_spec]))
    A = T === Bool ? Int : accumulator(promote_type(T, eltype(x[1])))
    groups, s = (max(attrs[:feature_groups], attrs[:batch_groups]),
        slide(attrs, Shape(row_shape(x[2]))))
    y = zeros(A, reverse(out[3:end])..., out[1], out[2] ÷ groups, groups)
    if !isempty(y) && !any(==(0), s.window)
        source =
            padded(
                grouped(convert(Array{A}, x[1]), attrs[:lhs_spec], groups,
                    attrs[:batch_groups] == 1), 0, s; outer = 3)
        w = permute_axes(convert(Array{A}, x[2]), attrs[:rhs_spec])
        w = reshape(w, size(w)[1:end-2]..., size(w)[end-1], out[2] ÷ groups, groups)
        total, rows, taken = (reshape(y, :, out[2] ÷ groups, groups), prod(out) ÷ out[2],
            size(w, ndims(w) - 2))
        for position in positions(s)
            window = reached(s, position, out[3:end])
            for g in 1:groups
                total[:, :, g] +=
                    reshape(source[window..., :, :, g], rows, taken) *
                    w[(position .+ 1)..., :, :, g]
            end
        end
    end
    # In memory (group, output feature, batch, places); the result's axes are out_spec.
    n = length(out)
    y = reshape(permute_axes(y, vcat(2, 0, 1, 3:n)), reverse(out)...)
    [rounded(T, permute_axes(y, inverse_perm(attrs[:out_spec])))]
end

"x with the axes (group, feature, batch, spatial …); the groups are of features or of the batch."
function grouped(x::Array, spec, groups, of_features)
    x = permute_axes(x, spec)
    n, batch, features = ndims(x), size(x, ndims(x)), size(x, ndims(x) - 1)
    spatial = size(x)[1:end-2]
    of_features ?
    permute_axes(reshape(x, spatial..., features ÷ groups, groups, batch), vcat(1, 2, 0, 3:n)) :
    permute_axes(reshape(x, spatial..., features, batch ÷ groups, groups), vcat(0, 2, 1, 3:n))
end

jvp(op::Convolution, b, eqn, x, ẋ) = product_rule(op, b, eqn, x, ẋ)

transpose(::Convolution, b, eqn, ȳ, x) =
    islinear(x[1]) ?
    [cast(b, lhs_cotangent(b, eqn, ȳ[1], aval(x[1]), x[2]), dtype(x[1])), nothing] :
    [nothing, rhs_cotangent(b, eqn, ȳ[1], x[1], aval(x[2]))]

swapped(spec) = vcat(spec[2], spec[1], spec[3:end])

# x̄: ȳ dilated by the strides, convolved with w turned round, features exchanged. The groups lie in
# ȳ's features either way; those of the batch come out in x̄'s features and are moved.
function lhs_cotangent(b, eqn, ȳ, x::TensorType, w)
    lhs, rhs, out, groups = (eqn[:lhs_spec], eqn[:rhs_spec], eqn[:out_spec],
        max(eqn[:feature_groups], eqn[:batch_groups]))
    s = slide(eqn.attrs, shape(w))
    low, high = padding_back(s, sizes_at(x.shape, lhs[3:end]), sizes_at(shape(ȳ), out[3:end]))
    turned = emit(b, :rev, regroup(b, w, rhs[1], rhs[2], groups); dims = rhs[3:end])
    x̄ = emit(b, :conv_general_dilated, ȳ, cast(b, turned, dtype(ȳ)); strides = s.base, low = low,
        high = high, lhs_dilation = s.strides, rhs_dilation = s.dilation, lhs_spec = out,
        rhs_spec = swapped(rhs), out_spec = lhs, feature_groups = groups,
        batch_groups = 1, dtype = eqn[:dtype], precision = eqn[:precision])
    eqn[:batch_groups] == 1 ? x̄ : regroup(b, x̄, lhs[2], lhs[1], groups)
end

# w̄: x convolved with ȳ, whose elements stand `strides` apart; batch and features exchanged, and so
# are their groups.
function rhs_cotangent(b, eqn, ȳ, x, w::TensorType)
    any(==(0), shape(ȳ)) && return nothing
    lhs, rhs, out, s = eqn[:lhs_spec], eqn[:rhs_spec], eqn[:out_spec], slide(eqn.attrs, w.shape)
    reach =
        gapped(sizes_at(shape(ȳ), out[3:end]),
            s.strides) .- gapped(sizes_at(shape(x), lhs[3:end]), s.base)
    w̄ = emit(b, :conv_general_dilated, cast(b, x, dtype(ȳ)), ȳ; strides = s.dilation, low = s.low,
        high = reach .+ extent(s) .- s.low .- 1, lhs_dilation = s.base,
        rhs_dilation = s.strides,
        lhs_spec = swapped(lhs), rhs_spec = swapped(out), out_spec = swapped(rhs),
        feature_groups = eqn[:batch_groups], batch_groups = eqn[:feature_groups],
        dtype = eqn[:dtype], precision = eqn[:precision])
    cast(b, w̄, w.dtype)
end

"Moves the groups that lead one axis to lead another axis."
function regroup(b::Builder, x::Atom, from, to, groups)
    groups == 1 && return x
    sizes = shape(x)
    split = vcat(sizes[1:from], groups, fld(sizes[from+1], groups), sizes[from+2:end])
    perm = deleteat!(collect(0:length(sizes)), from + 1)
    insert!(perm, to + 1, from)
    joined = copy(sizes)
    joined[from+1], joined[to+1] = fld(sizes[from+1], groups), sizes[to+1] * groups
    emit(b, :reshape, emit(b, :transpose, emit(b, :reshape, x; shape = Shape(split)); perm = perm);
        shape = joined)
end

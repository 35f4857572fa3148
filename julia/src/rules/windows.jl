# Windows that slide over an array: what convolutions and windowed reductions have in common.

"""
How a window slides, one entry an axis: `base - 1` gaps are put between the array's elements and
`low` and `high` around them (cutting off where negative); the window's own elements stand
`dilation` apart, and it moves by `strides`.
"""
struct Slide
    window::Shape
    strides::Vector{Int}
    low::Shape
    high::Shape
    base::Vector{Int}
    dilation::Vector{Int}
end

gapped(sizes, factors) = Dim[dilated(n, k - 1) for (n, k) in zip(sizes, factors)]
extent(s::Slide) = gapped(s.window, s.dilation)

"How often the window fits along each axis of an array of that shape."
function places(op, s::Slide, shape)
    n = length(shape)
    all(v -> length(v) == n, (s.window, s.strides, s.low, s.high, s.base, s.dilation)) &&
        all(k -> k >= 1, vcat(s.strides, s.base, s.dilation)) && !any(k -> below(k, 0), s.window) ||
        infer_error(
            op,
            "the window $(s.window) and its strides, padding and dilations do " *
            "not fit the shape $shape"
        )
    Dim[
        places(op, m + l + h, e, k)
        for (m, l, h, e, k) in zip(gapped(shape, s.base), s.low, s.high, extent(s), s.strides)
    ]
end
places(op, n::Int, window::Int, stride) = max(0, fld(n - window, stride) + 1)
places(op, n::Dim, window::Dim, stride) =
    window == 1 && stride == 1 ? n :
    throw(
        UnsupportedPrimitive(string(name(op)),
            "a window of size $window slides over an axis of unknown size $n", "")
    )

"""
The padding with which the transpose slides over the cotangent, whose elements then stand `strides`
apart: element i of the array meets element k of the window at place p where p·stride + k·dilation =
i·base + low, so that the window, turned round, begins at extent - 1 - low before the cotangent and
reaches just far enough.
"""
function padding_back(s::Slide, shape, places)
    low = extent(s) .- s.low .- 1
    low, gapped(shape, s.base) .+ extent(s) .- 1 .- gapped(places, s.strides) .- low
end

"The array with gaps and padding, filled with `value`; `outer` axes in front are left alone."
function padded(x::Array, value, s::Slide; outer = 0)
    before = zeros(Int, outer)
    low, high, interior = (vcat(before, Int.(s.low)), vcat(before, Int.(s.high)),
        vcat(before, s.base .- 1))
    shape = Dim[l + h + dilated(n, i) for (n, l, h, i) in zip(row_shape(x), low, high, interior)]
    attrs = Attributes(:low => low, :high => high, :interior => interior)
    evaluate(Pad(), Any[x, fill(convert(eltype(x), value))], attrs,
        [TensorType(eltype(x), shape)])[1]
end

"The positions in a window, in row-major order; each is given for Julia's dimensions."
positions(s::Slide) = Iterators.product((0:n-1 for n in reverse(Int.(s.window)))...)
"Where in the padded array the windows have this position, one range a dimension."
reached(s::Slide, position, places) =
    [
        k*d+1:stride:k*d+1+stride*(n-1)
        for (k, d, stride, n) in zip(position, reverse(s.dilation), reverse(s.strides),
            reverse(places))
    ]

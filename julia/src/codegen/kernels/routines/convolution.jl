# Convolutions as loops.

"""
How a convolution lies in memory. Batch, groups, features and output features: how many and how far
apart neighbours are in x, w and y; `space` lists the spatial axes, for each the distance of
neighbours in w too."""
struct Layout{N}
    space::NTuple{N,Axis}
    w_space::NTuple{N,Int}
    batch::NTuple{3,Int}        # count, step in x, in y
    groups::NTuple{4,Int}       # count, step in x, in w, in y
    features::NTuple{3,Int}     # count, step in x, in w
    made::NTuple{3,Int}         # count, step in w, in y
end

# For each group, batch, window position, feature: y's row along output features or along the last
# spatial axis, whichever lies together.
@noinline function convolve!(y::Ptr{A}, x::Ptr{T}, w::Ptr{T}, l::Layout,
    along_features::Bool) where {A,T}
    for g in 0:l.groups[1]-1, b in 0:l.batch[1]-1
        yb = y + (g * l.groups[4] + b * l.batch[3]) * sizeof(A)
        xb = x + (g * l.groups[2] + b * l.batch[2]) * sizeof(T)
        wb = w + g * l.groups[3] * sizeof(T)
        if along_features
            convolve_features!(yb, xb, wb, l, l.space, l.w_space)
        else
            for o in 0:l.made[1]-1, c in 0:l.features[1]-1
                convolve_space!(yb + o * l.made[3] * sizeof(A), xb + c * l.features[2] * sizeof(T),
                    wb + (o * l.made[2] + c * l.features[3]) * sizeof(T), l.space, l.w_space)
            end
        end
    end
end

@inline function convolve_features!(y::Ptr{A}, x::Ptr{T}, w, l, ::Tuple{}, ::Tuple{}) where {A,T}
    for c in 0:l.features[1]-1
        xc, wc = stored(A, at(x, c * l.features[2])), w + c * l.features[3] * sizeof(T)
        multiply_row!(y, wc, xc, l.made[1], l.made[3], l.made[2])
    end
end
@noinline function convolve_features!(y::Ptr{A}, x::Ptr{T}, w, l, axes::Tuple,
    steps::Tuple) where {A,T}
    a = axes[1]
    for k in 0:a.window-1
        p, n, step, i, i_step = meetings(a, k)
        for j in 0:n-1
            convolve_features!(y + (p + j * step) * a.y_step * sizeof(A),
                x + (i + j * i_step) * a.x_step * sizeof(T), w + k * steps[1] * sizeof(T), l,
                Base.tail(axes), Base.tail(steps))
        end
    end
end

@inline convolve_space!(y::Ptr{A}, x::Ptr, w, ::Tuple{}, ::Tuple{}) where {A} =
    put!(y, at(y, 0) + stored(A, at(x, 0)) * stored(A, at(w, 0)), 0)
@noinline function convolve_space!(y::Ptr{A}, x::Ptr{T}, w, axes::Tuple, steps::Tuple) where {A,T}
    a = axes[1]
    for k in 0:a.window-1
        p, n, step, i, i_step = meetings(a, k)
        y1, x1, w1 = (y + p * a.y_step * sizeof(A), x + i * a.x_step * sizeof(T),
            w + k * steps[1] * sizeof(T))
        if length(axes) == 1
            multiply_row!(y1, x1, stored(A, at(w1, 0)), n, step * a.y_step, i_step * a.x_step)
        else
            for j in 0:n-1
                convolve_space!(y1 + j * step * a.y_step * sizeof(A),
                    x1 + j * i_step * a.x_step * sizeof(T), w1, Base.tail(axes), Base.tail(steps))
            end
        end
    end
end

"y += number · x along a row."
@inline function multiply_row!(y::Ptr{A}, x::Ptr, number::A, n, y_step, x_step) where {A}
    if (y_step == 1) & (x_step == 1)
        @vector for i in 0:n-1
            put!(y, muladd(number, stored(A, at(x, i)), at(y, i)), i)
        end
    else
        @vector for i in 0:n-1
            put!(y, muladd(number, stored(A, at(x, i * x_step)), at(y, i * y_step)), i * y_step)
        end
    end
end

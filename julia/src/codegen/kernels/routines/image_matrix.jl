# Convolutions as products of matrices: the elements of x that each place meets are laid out as the
# rows (or columns) of a matrix, for a block of places at a time (Chellapilla, Puri, Simard 2006,
# High performance convolutional neural networks for document processing).

"""
How a convolution becomes a product. The matrix of x's elements has `taken` numbers for each place:
`x_steps` tells how far apart the window's neighbours along each spatial axis are among them,
`feature_step` features; `features_inside` whether they lie together for each place. `w_transposed`:
w holds all its numbers for an output feature together, or else all output features together;
neighbours on the other side are `w_apart`. Likewise `y_transposed` and `y_apart`. `block`: how many
places along the first axis at a time."""
struct ImagePlan{N}
    taken::Int
    x_steps::NTuple{N,Int}
    feature_step::Int
    features_inside::Bool
    w_transposed::Bool
    w_apart::Int
    y_transposed::Bool
    y_apart::Int
    block::Int
end

@noinline function convolve_by_products!(gemm::Lapack, matrix::Ptr{T}, y::Ptr{T}, x::Ptr{T},
    w::Ptr{T}, l::Layout, p::ImagePlan, from::Int, to::Int) where {T}
    a = l.space[1]
    others = count_places(Base.tail(l.space))
    for g in 0:l.groups[1]-1, b in from:to-1
        first_ = 0
        while first_ < a.places
            n = min(p.block, a.places - first_)
            rows = n * others
            space = (part_of(a, first_, n), Base.tail(l.space)...)
            lay_out!(matrix, x + (g * l.groups[2] + b * l.batch[2]) * sizeof(T), l, p, space, rows)
            place = y + (g * l.groups[4] + b * l.batch[3] + first_ * a.y_step) * sizeof(T)
            multiply!(gemm, place, matrix, w + g * l.groups[3] * sizeof(T), l, p, rows)
            first_ += n
        end
    end
end

"The axis with n of its places, from `first_` on."
@inline part_of(a::Axis, first_, n) =
    Axis(n, a.window, a.elements, a.stride, a.dilation, a.base, a.low - first_ * a.stride, a.y_step,
        a.x_step)

# Fortran's matrices are transposed to ours: what lies together is their first index.
@inline function multiply!(gemm, y, matrix, w, l, p, rows)
    made, k = l.made[1], p.taken
    apart = p.features_inside ? k : rows
    if p.y_transposed
        gemm!(gemm, rows, made, k, Factor(matrix, apart, p.features_inside),
            Factor(w, p.w_apart, !p.w_transposed), y, p.y_apart)
    else
        gemm!(gemm, made, rows, k, Factor(w, p.w_apart, p.w_transposed),
            Factor(matrix, apart, !p.features_inside), y, p.y_apart)
    end
end

function lay_out!(matrix::Ptr{T}, x::Ptr{T}, l, p, space, rows) where {T}
    @vector for i in 0:rows*p.taken-1
        put!(matrix, zero(T), i)
    end
    place, number = p.features_inside ? (p.taken, 1) : (1, rows)
    if p.features_inside
        lay_out_axes!(matrix, x, space, p.x_steps, place, number,
            (l.features[1], l.features[2], p.feature_step))
    else
        for c in 0:l.features[1]-1
            lay_out_axes!(matrix + c * p.feature_step * number * sizeof(T),
                x + c * l.features[2] * sizeof(T), space, p.x_steps, place, number, (1, 1, 1))
        end
    end
end

"""
Copies a run of features for each place and position in the window, or, if it is one feature, a run
of places."""
@inline lay_out_axes!(matrix::Ptr{T}, x::Ptr{T}, ::Tuple{}, ::Tuple{}, place, number,
    run) where {T} = copy_run!(matrix, x, run[1], run[3] * number, run[2])
@noinline function lay_out_axes!(matrix::Ptr{T}, x::Ptr{T}, axes::Tuple, steps::Tuple, place,
    number, run) where {T}
    a, apart = axes[1], place * count_places(Base.tail(axes))
    for k in 0:a.window-1
        first_, n, step, i, i_step = meetings(a, k)
        to, from = (matrix + (k * steps[1] * number + first_ * apart) * sizeof(T),
            x + i * a.x_step * sizeof(T))
        if length(axes) == 1 && run[1] == 1
            copy_run!(to, from, n, step * apart, i_step * a.x_step)
        else
            for j in 0:n-1
                lay_out_axes!(to + j * step * apart * sizeof(T),
                    from + j * i_step * a.x_step * sizeof(T), Base.tail(axes), Base.tail(steps),
                    place, number, run)
            end
        end
    end
end

@inline function copy_run!(to, from, n, to_step, from_step)
    if (to_step == 1) & (from_step == 1)
        @vector for i in 0:n-1
            put!(to, at(from, i), i)
        end
    else
        @vector for i in 0:n-1
            put!(to, at(from, i * from_step), i * to_step)
        end
    end
end

# Windows that slide over arrays.

"""
One axis: place p of `places` and position k of `window` meet element (p · stride + k · dilation -
low) / base of `elements`, if there is one. Neighbours are `y_step` apart among the places and
`x_step` among the elements."""
struct Axis
    places::Int
    window::Int
    elements::Int
    stride::Int
    dilation::Int
    base::Int
    low::Int
    y_step::Int
    x_step::Int
end

"Whether each place meets the element of its own number, and no other."
isplain(a::Axis) =
    a.window == 1 && a.stride == 1 && a.base == 1 && a.low == 0 && a.places == a.elements

"""
    meetings(axis, k) -> (first, count, step, x, x_step)

The places that meet an element at window position k: from `first` on, `step` apart; the element of
the first, and how far on the next is. A base dilation leaves every step-th place, where step ·
stride is a multiple of it."""
@inline function meetings(a::Axis, k::Int)
    shift = k * a.dilation - a.low
    step = quotient(a.base, common_divisor(a.stride, a.base))
    p, tries = shift < 0 ? -floor_quotient(shift, a.stride) : 0, 0
    while tries < step && remainder(p * a.stride + shift, a.base) != 0
        p, tries = p + 1, tries + 1
    end
    reach = (a.elements - 1) * a.base - shift          # p · stride may go so far
    last_ = tries == step ? -1 : min(a.places - 1, floor_quotient(reach, a.stride))
    n = p > last_ ? 0 : quotient(last_ - p, step) + 1
    p, n, step, quotient(p * a.stride + shift, a.base), quotient(step * a.stride, a.base)
end
@inline function common_divisor(a::Int, b::Int)
    while b != 0
        a, b = b, remainder(a, b)
    end
    a
end

# Every place is combined with every element it meets: the window positions of each axis outside,
# its places inside, so that the innermost loop runs along places, or along the `inner` elements
# that lie together.
@noinline function reduce_windows!(f::F, y::Ptr{A}, x::Ptr{T}, axes::Axes,
    inner::Int) where {F,A,T,Axes<:Tuple}
    slide!(f, y, x, axes, inner)
    nothing
end

# Loops over any number of axes are written out: Julia's inference gives up on deep recursion, and
# what it gives up on uses the heap.
numbered(name, k) = Symbol(name, k)
function slides(k, n, A, T)
    y, x, y_next, x_next = (numbered(:y, k - 1), numbered(:x, k - 1), numbered(:y, k),
        numbered(:x, k))
    k > n && return :(combine_row!(f, $y, $x, inner, 1, 1))
    within =
        k == n ?
        quote
            row, from = $y + p * a.y_step * $(sizeof(A)), $x + i * a.x_step * $(sizeof(T))
            if inner == 1
                combine_row!(f, row, from, n, step * a.y_step, i_step * a.x_step)
            else
                for j in 0:n-1
                    combine_row!(f, row + j * step * a.y_step * $(sizeof(A)),
                        from + j * i_step * a.x_step * $(sizeof(T)), inner, 1, 1)
                end
            end
        end : quote
            for j in 0:n-1
                $y_next = $y + (p + j * step) * a.y_step * $(sizeof(A))
                $x_next = $x + (i + j * i_step) * a.x_step * $(sizeof(T))
                $(slides(k + 1, n, A, T))
            end
        end
    quote
        let a = axes[$k]
            for k in 0:a.window-1
                local p, n, step, i, i_step = meetings(a, k)
                $within
            end
        end
    end
end
# A generator sees the methods that were there when it was defined, and no later ones.
@generated slide!(f, y0::Ptr{A}, x0::Ptr{T}, axes::NTuple{N,Axis}, inner::Int) where {A,T,N} =
    slides(1, N, A, T)

@inline function combine_row!(f, y::Ptr{A}, x, n, y_step, x_step) where {A}
    if y_step == 1 && x_step == 1
        @vector for i in 0:n-1
            put!(y, f(at(y, i), stored(A, at(x, i))), i)
        end
    else
        @vector for i in 0:n-1
            put!(y, f(at(y, i * y_step), stored(A, at(x, i * x_step))), i * y_step)
        end
    end
end

# ---- selections: the element of each window that is preferred to the others, the first of equals

"Where place number p, in row-major order, is along each axis."
@inline coordinates(axes::Tuple, p) = map(a -> remainder(quotient(p, a.y_step), a.places), axes)
@generated count_places(axes::NTuple{N,Axis}) where {N} =
    :(*(1, 1, $((:(axes[$k].places) for k in 1:N)...)))

"""
Writes where the elements of a window are, in its order, with -1 for those in the padding; gives
their number."""
@generated function window_offsets!(offsets::Ptr{Int}, axes::NTuple{N,Axis},
    place::NTuple{N,Int}) where {N}
    code = quote
        put!(offsets, $(numbered(:here, N)) ? $(numbered(:offset, N)) : -1, n)
        n += 1
    end
    for k in N:-1:1
        code = quote
            let a = axes[$k]
                for w in 0:a.window-1
                    local position = place[$k] * a.stride + w * a.dilation - a.low
                    # Divisions are slow, and most arrays are not dilated.
                    local i = a.base == 1 ? position : floor_quotient(position, a.base)
                    $(numbered(:here, k)) =
                        $(numbered(:here, k - 1)) & (0 <= i < a.elements) & (i * a.base == position)
                    $(numbered(:offset, k)) = $(numbered(:offset, k - 1)) + i * a.x_step
                    $code
                end
            end
        end
    end
    :(n = 0; offset0 = 0; here0 = true; $code; n)
end

"""
The preferred one of `key`, at `index`, and the window's elements from number `from` on; its index,
-1 in the padding."""
@inline function preferred(prefers, keys::Ptr{T}, offsets, n, c, padding::T, from, key::T,
    index) where {T}
    for w in from:n-1
        o = at(offsets, w)
        k = o < 0 ? padding : at(keys, o + c)
        prefers(key, k) || ((key, index) = (k, o < 0 ? -1 : o + c))
    end
    index
end

# `axes` are those before the `inner` elements that lie together and that windows do not move along:
# what is known of a window holds for them all. As in XLA, gathering begins with the padding and
# scattering with the window's first element.
@noinline function select_and_gather!(prefers::P, y::Ptr{T}, values::Ptr{T}, keys::Ptr{T},
    offsets::Ptr{Int}, axes::Axes, inner::Int, padding::T) where {P,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        n = window_offsets!(offsets, axes, coordinates(axes, p * inner))
        for c in 0:inner-1
            index = preferred(prefers, keys, offsets, n, c, padding, 0, padding, -1)
            put!(y, index < 0 ? zero(T) : at(values, index), p * inner + c)
        end
    end
end

@noinline function select_and_scatter!(prefers::P, total::Ptr{A}, updates::Ptr{T}, keys::Ptr{T},
    offsets::Ptr{Int}, axes::Axes, inner::Int, padding::T) where {P,A,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        n = window_offsets!(offsets, axes, coordinates(axes, p * inner))
        n == 0 && continue
        first_ = at(offsets, 0)
        for c in 0:inner-1
            index = preferred(prefers, keys, offsets, n, c, padding, 1,
                first_ < 0 ? padding : at(keys, first_ + c), first_ < 0 ? -1 : first_ + c)
            index < 0 ||
                put!(total, at(total, index) + stored(A, at(updates, p * inner + c)), index)
        end
    end
end

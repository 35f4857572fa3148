# Windows that slide over arrays.

"""
One axis: place p of `places` and position k of `window` meet element (p · stride + k · dilation - low) / base of `elements`, if there is one.
Neighbours are `y_step` apart among the places and `x_step` among the elements."""
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
isplain(a::Axis) = a.window == 1 && a.stride == 1 && a.base == 1 && a.low == 0 && a.places == a.elements

"""
    meetings(axis, k) -> (first, count, step, x, x_step)

The places that meet an element at window position k: from `first` on, `step` apart; the element of the first, and how far on the next is.
A base dilation leaves every step-th place, where step · stride is a multiple of it."""
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

# Every place is combined with every element it meets: the window positions of each axis outside, its places inside, so that the innermost
# loop runs along places, or along the `inner` elements that lie together.
@noinline function reduce_windows!(f::F, y::Ptr{A}, x::Ptr{T}, axes::Axes, inner::Int) where {F,A,T,Axes<:Tuple}
    slide!(f, y, x, axes, inner)
    nothing
end

# Loops over any number of axes are written out: Julia's inference gives up on deep recursion, and what it gives up on uses the heap.
@generated slide!(f, y0::Ptr{A}, x0::Ptr{T}, axes::NTuple{N,Axis}, inner::Int) where {A,T,N} = slides(1, N, A, T)

numbered(name, k) = Symbol(name, k)
function slides(k, n, A, T)
    y, x, y_next, x_next = numbered(:y, k - 1), numbered(:x, k - 1), numbered(:y, k), numbered(:x, k)
    k > n && return :(combine_row!(f, $y, $x, inner, 1, 1))
    within = k == n ? quote
        row, from = $y + p * a.y_step * $(sizeof(A)), $x + i * a.x_step * $(sizeof(T))
        if inner == 1
            combine_row!(f, row, from, n, step * a.y_step, i_step * a.x_step)
        else
            for j in 0:n-1
                combine_row!(f, row + j * step * a.y_step * $(sizeof(A)), from + j * i_step * a.x_step * $(sizeof(T)), inner, 1, 1)
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

# ---- selections: the element of each window that is preferred to the others, the first of those that are preferred to it

"A window's choice so far: a key and its offset, -1 in the padding. `some`: whether a key has been chosen that the next must beat."
struct Choice{T}
    key::T
    index::Int
    some::Bool
end

"Where place number p, in row-major order, is along each axis."
@inline coordinates(axes::Tuple, p) = map(a -> remainder(quotient(p, a.y_step), a.places), axes)
@generated count_places(axes::NTuple{N,Axis}) where {N} = :(*(1, 1, $((:(axes[$k].places) for k in 1:N)...)))

@generated function chosen(prefers, keys, axes::NTuple{N,Axis}, place::NTuple{N,Int}, c::Choice{T}, padding) where {N,T}
    offset, here = numbered(:offset, N), numbered(:here, N)
    code = quote
        key = $here ? at(keys, $offset) : padding
        c = c.some && prefers(c.key, key) ? c : Choice{T}(key, $here ? $offset : -1, true)
    end
    for k in N:-1:1
        code = quote
            let a = axes[$k]
                for w in 0:a.window-1
                    local position = place[$k] * a.stride + w * a.dilation - a.low
                    local i = floor_quotient(position, a.base)
                    $(numbered(:here, k)) = $(numbered(:here, k - 1)) & (0 <= i < a.elements) & (i * a.base == position)
                    $(numbered(:offset, k)) = $(numbered(:offset, k - 1)) + i * a.x_step
                    $code
                end
            end
        end
    end
    :(offset0 = 0; here0 = true; $code; c)
end

# As in XLA, gathering begins with the padding and scattering with the window's first element.
@noinline function select_and_gather!(prefers::P, y::Ptr{T}, values::Ptr{T}, keys::Ptr{T}, axes::Axes, padding::T) where {P,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        index = chosen(prefers, keys, axes, coordinates(axes, p), Choice{T}(padding, -1, true), padding).index
        put!(y, index < 0 ? zero(T) : at(values, index), p)
    end
end

@noinline function select_and_scatter!(prefers::P, total::Ptr{A}, updates::Ptr{T}, keys::Ptr{T}, axes::Axes, padding::T) where {P,A,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        index = chosen(prefers, keys, axes, coordinates(axes, p), Choice{T}(padding, -1, false), padding).index
        index < 0 || put!(total, at(total, index) + stored(A, at(updates, p)), index)
    end
end

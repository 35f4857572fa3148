# Fourier transforms of lines of numbers, by Stockham's self-sorting passes: with n = r m, pass
# after pass combines r numbers that are m apart into neighbours (Van Loan 1992, Computational
# frameworks for the fast Fourier transform, 1.7). Lines go side by side, real and imaginary parts
# apart, so that vectors lie across the lines.
#
# `roots` holds e^(± 2πi j / n) for j < n; `twice` those for 2n.

const RADICES = (4, 2, 3, 5, 7, 11, 13)

"Complex numbers, real and imaginary parts apart."
struct Split{T}
    re::Ptr{T}
    im::Ptr{T}
end
@inline at(x::Split, i::Int) = Complex(at(x.re, i), at(x.im, i))
@inline put!(x::Split, z, i::Int) = (put!(x.re, real(z), i); put!(x.im, imag(z), i))
"Array k, from 0, of those of n complex numbers that begin at p."
@inline split_at(p::Ptr, k, n) = Split(nth(p, 2k, n), nth(p, 2k + 1, n))

"Where numbers are: neighbours in a line are `apart`, lines `next` to each other, groups `beyond`."
struct Lines
    apart::Int
    next::Int
    beyond::Int
end
"`groups` of so many `lines` of `along` numbers, of which up to `at_once` go side by side."
struct Transform
    along::Int
    lines::Int
    groups::Int
    at_once::Int
end

"""
The transforms of the lines of x, which `taken` and `given` read and write; they may be the same
memory. `work` holds 2 `at_once` · `along` complex numbers."""
@noinline function transform!(y::Ptr{C}, x::Ptr{C}, work::Ptr{T},
    (roots, twice)::NTuple{2,Ptr{C}}, radices::R, (taken, given), (from, to)::NTuple{2,Lines},
    t::Transform) where {T,C<:Complex{T},R<:Tuple}
    for g in 0:t.groups-1
        l = 0
        while l < t.lines
            n = min(t.at_once, t.lines - l)
            a, b = split_at(work, 0, n * t.along), split_at(work, 1, n * t.along)
            take_lines!(taken, a, nth(x, 1, g * from.beyond + l * from.next), twice, from, t.along,
                n)
            z = transform_lines!(b, a, roots, radices, t.along, n)
            give_lines!(given, nth(y, 1, g * to.beyond + l * to.next), z, twice, to, t.along, n)
            l += n
        end
    end
end

# ---- how lines are read and written

"Lines of as many complex numbers as are transformed."
struct Whole end
@inline function take_lines!(::Whole, z::Split, x::Ptr, twice, from::Lines, along, n)
    if from.next == 1
        for j in 0:along-1
            @vector for l in 0:n-1
                put!(z, at(x, j * from.apart + l), j * n + l)
            end
        end
    else
        for l in 0:n-1, j in 0:along-1
            put!(z, at(x, l * from.next + j * from.apart), j * n + l)
        end
    end
end
@inline function give_lines!(::Whole, y::Ptr, z::Split, twice, to::Lines, along, n)
    if to.next == 1
        for j in 0:along-1
            @vector for l in 0:n-1
                put!(y, at(z, j * n + l), j * to.apart + l)
            end
        end
    else
        for l in 0:n-1, j in 0:along-1
            put!(y, at(z, j * n + l), l * to.next + j * to.apart)
        end
    end
end

"""
The first half, and one more, of the transforms of real lines twice as long, whose neighbours are
real and imaginary parts: X = E + w O, where the transform of these is Z = E + i O, and those of
real lines, E and O, are mirrored (Press et al. 2007, Numerical recipes, 12.3)."""
struct Half end
@inline function give_lines!(::Half, y::Ptr, z::Split, twice, to::Lines, along, n)
    for k in 0:along
        w = at(twice, k)
        here, mirrored = k == along ? 0 : k, k == 0 ? 0 : along - k
        @vector for l in 0:n-1
            a, b = at(z, here * n + l), conj(at(z, mirrored * n + l))
            d = product(w, a - b)
            put!(y, (a + b + Complex(imag(d), -real(d))) / 2, l * to.next + k * to.apart)
        end
    end
end
# Of the first and last number the imaginary parts count for nothing.
@inline function take_lines!(::Half, z::Split, x::Ptr, twice, from::Lines, along, n)
    for k in 0:along-1
        w = at(twice, k)
        @vector for l in 0:n-1
            a = at(x, l * from.next + k * from.apart)
            b = conj(at(x, l * from.next + (along - k) * from.apart))
            (a, b) = k == 0 ? (complex(real(a)), complex(real(b))) : (a, b)
            d = product(w, a - b)
            put!(z, a + b + Complex(-imag(d), real(d)), k * n + l)
        end
    end
end

# ---- passes

"Transforms of n lines side by side at `x`, which are then there or at `y`."
@inline function transform_lines!(y::S, x::S, roots, radices, along, n) where {S<:Split}
    passes!(y, x, roots, radices, along, along, n)
    isodd(length(radices)) ? y : x
end

"""
The first pass from x to y, the next back, and so forth. What is left to do are transforms of length
n, `side` of them side by side."""
passes!(y::S, x::S, roots, ::Tuple{}, total, n, side) where {S<:Split} = nothing
@noinline function passes!(y::S, x::S, roots, radices::Tuple, total, n,
    side) where {S<:Split}
    r = radices[1]
    r == 4 ? pass!(Val(4), y, x, roots, total, n, side) :
    r == 2 ? pass!(Val(2), y, x, roots, total, n, side) :
    r == 3 ? pass!(Val(3), y, x, roots, total, n, side) :
    r == 5 ? pass!(Val(5), y, x, roots, total, n, side) :
    any_pass!(r, y, x, roots, total, n, side)
    passes!(x, y, roots, Base.tail(radices), total, quotient(n, r), r * side)
end

@inline function pass!(::Val{r}, y::Split, x::Split, roots::Ptr, total, n, side) where {r}
    m, apart = quotient(n, r), quotient(total, n)
    small = ntuple(j -> at(roots, (j - 1) * quotient(total, r)), Val(r))
    for p in 0:m-1
        turn = ntuple(k -> at(roots, (k - 1) * p * apart), Val(r))
        from, to = p * side, r * p * side
        @vector for q in 0:side-1
            a = ntuple(j -> at(x, from + q + (j - 1) * m * side), Val(r))
            b = butterfly(a, small)
            ntuple(k -> (put!(y, product(b[k], turn[k]), to + q + (k - 1) * side); nothing),
                Val(r))
        end
    end
end

# Complex products without the care for infinities, which loops cannot afford.
@inline product(a::Complex, b::Complex) =
    Complex(real(a) * real(b) - imag(a) * imag(b), real(a) * imag(b) + imag(a) * real(b))
@inline quarter(a::Complex, i::Complex) = Complex(-imag(i) * imag(a), imag(i) * real(a))

@inline butterfly(a::NTuple{2}, roots) = (a[1] + a[2], a[1] - a[2])
@inline function butterfly(a::NTuple{4}, roots)
    even, odd, even_, odd_ = a[1] + a[3], a[2] + a[4], a[1] - a[3], quarter(a[2] - a[4], roots[2])
    (even + odd, even_ + odd_, even - odd, even_ - odd_)
end
@inline function butterfly(a::NTuple{3}, w)
    sum_, middle, cross = a[2] + a[3], a[1] + real(w[2]) * (a[2] + a[3]), imag(w[2]) * (a[2] - a[3])
    turned = Complex(-imag(cross), real(cross))
    (a[1] + sum_, middle + turned, middle - turned)
end
@inline function butterfly(a::NTuple{5}, w)
    s1, s2, d1, d2 = a[2] + a[5], a[3] + a[4], a[2] - a[5], a[3] - a[4]
    m1, m2 = a[1] + real(w[2]) * s1 + real(w[3]) * s2, a[1] + real(w[3]) * s1 + real(w[2]) * s2
    c1, c2 = imag(w[2]) * d1 + imag(w[3]) * d2, imag(w[3]) * d1 - imag(w[2]) * d2
    t1, t2 = Complex(-imag(c1), real(c1)), Complex(-imag(c2), real(c2))
    (a[1] + s1 + s2, m1 + t1, m2 + t2, m2 - t2, m1 - t1)
end

"A pass of any radix: the sums as they are."
@noinline function any_pass!(r, y::Split, x::Split, roots::Ptr, total, n, side)
    m, apart, step = quotient(n, r), quotient(total, n), quotient(total, r)
    for p in 0:m-1, k in 0:r-1
        turn, to = at(roots, k * p * apart), (r * p + k) * side
        @vector for q in 0:side-1
            put!(y, at(x, p * side + q), to + q)
        end
        for j in 1:r-1
            root, from = at(roots, remainder(j * k, r) * step), (p + j * m) * side
            @vector for q in 0:side-1
                put!(y, at(y, to + q) + product(at(x, from + q), root), to + q)
            end
        end
        @vector for q in 0:side-1
            put!(y, product(at(y, to + q), turn), to + q)
        end
    end
end

"""
Lengths with large prime factors, by Bluestein's convolution: as jk = (j² + k² - (k-j)²)/2, the sum
is cₖ Σⱼ (xⱼ cⱼ) c̄ₖ₋ⱼ with cⱼ = e^(± πi j²/n) (Bluestein 1970), done in length m ≥ 2n - 1. `chirp`
holds c, `filter` the transform of its conjugate over m; `work` holds 2m complex numbers."""
@noinline function chirp_transform!(y::Ptr{C}, x::Ptr{C}, work::Ptr,
    (chirp, filter, roots)::NTuple{3,Ptr{C}}, radices::R, m::Int, before::Int, along::Int,
    after::Int) where {C,R<:Tuple}
    a, b = split_at(work, 0, m), split_at(work, 1, m)
    for l in 0:before-1, i in 0:after-1
        line = l * along * after + i
        for j in 0:m-1
            put!(a,
                j < along ?
                product(at(x, line + min(j, along - 1) * after),
                    at(chirp, min(j, along - 1))) : zero(C), j)
        end
        z = transform_lines!(b, a, roots, radices, m, 1)
        for j in 0:m-1      # the conjugate transform of a conjugate is the inverse one's conjugate
            put!(a, conj(product(at(z, j), at(filter, j))), j)
        end
        z = transform_lines!(b, a, roots, radices, m, 1)
        for k in 0:along-1
            put!(y, product(conj(at(z, k)), at(chirp, k)), line + k * after)
        end
    end
end

"""
Lines of n numbers of which the first half is given, the others being mirror images; what must be
real is taken as real."""
@noinline function complete_lines!(y::Ptr{C}, x::Ptr{C}, lines::Int, n::Int) where {C}
    half = (n >> 1) + 1
    for l in 0:lines-1, k in 0:n-1
        z = at(x, l * half + ifelse(2k <= n, k, n - k))
        z = (k == 0) | (2k == n) ? C(real(z), zero(real(z))) : 2k < n ? z : conj(z)
        put!(y, z, l * n + k)
    end
end

@noinline function scale!(y::Ptr{T}, factor::T, n::Int) where {T}
    @vector for i in 0:n-1
        put!(y, at(y, i) * factor, i)
    end
end

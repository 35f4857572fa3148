# Fourier transforms along the middle axis of three, by Stockham's self-sorting passes: with n = r
# m, pass after pass combines r numbers that are m apart into neighbours (Van Loan 1992,
# Computational frameworks for the fast Fourier transform, 1.7), lines side by side.
#
# `roots` holds e^(± 2πi j / n) for j < n.

const RADICES = (4, 2, 3, 5, 7, 11, 13)

"All lines of x; y, x and `spare`, which holds `along · after` numbers, are different memory."
@noinline function transform!(y::Ptr{C}, x::Ptr{C}, spare::Ptr{C}, roots::Ptr{C}, radices::R,
    before::Int, along::Int, after::Int) where {C,R<:Tuple}
    for b in 0:before-1
        offset = b * along * after * sizeof(C)
        transform_lines!(y + offset, x + offset, spare, roots, radices, along, after)
    end
end

@inline function transform_lines!(y, x, spare, roots, radices, along, after)
    isempty(radices) && return copy!(y, x, along * after)
    isodd(length(radices)) ? passes!(y, spare, x, roots, radices, along, along, after) :
    passes!(spare, y, x, roots, radices, along, along, after)
end

"""
The first pass from x to y, the next on to `other`, and so forth. What is left to do are transforms
of length n, `side` of them side by side."""
passes!(y::Ptr{C}, other::Ptr{C}, x::Ptr{C}, roots::Ptr{C}, ::Tuple{}, total, n, side) where {C} =
    nothing
@noinline function passes!(y::Ptr{C}, other::Ptr{C}, x::Ptr{C}, roots::Ptr{C}, radices::Tuple,
    total, n, side) where {C}
    r = radices[1]
    r == 4 ? pass!(Val(4), y, x, roots, total, n, side) :
    r == 2 ? pass!(Val(2), y, x, roots, total, n, side) :
    r == 3 ? pass!(Val(3), y, x, roots, total, n, side) :
    r == 5 ? pass!(Val(5), y, x, roots, total, n, side) :
    any_pass!(r, y, x, roots, total, n, side)
    passes!(other, y, y, roots, Base.tail(radices), total, quotient(n, r), r * side)
end

@inline function pass!(::Val{r}, y::Ptr{C}, x::Ptr{C}, roots::Ptr{C}, total, n, side) where {r,C}
    m, apart = quotient(n, r), quotient(total, n)
    small = ntuple(j -> at(roots, (j - 1) * quotient(total, r)), Val(r))
    for p in 0:m-1
        turn = ntuple(k -> at(roots, (k - 1) * p * apart), Val(r))
        from, to = x + p * side * sizeof(C), y + r * p * side * sizeof(C)
        @vector for q in 0:side-1
            a = ntuple(j -> at(from, q + (j - 1) * m * side), Val(r))
            b = butterfly(a, small)
            ntuple(k -> (put!(to, product(b[k], turn[k]), q + (k - 1) * side); nothing), Val(r))
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
@noinline function any_pass!(r, y::Ptr{C}, x::Ptr{C}, roots::Ptr{C}, total, n, side) where {C}
    m, apart, step = quotient(n, r), quotient(total, n), quotient(total, r)
    for p in 0:m-1, k in 0:r-1
        turn, to = at(roots, k * p * apart), y + (r * p + k) * side * sizeof(C)
        @vector for q in 0:side-1
            put!(to, at(x, q + p * side), q)
        end
        for j in 1:r-1
            root, from = at(roots, remainder(j * k, r) * step), x + (p + j * m) * side * sizeof(C)
            @vector for q in 0:side-1
                put!(to, at(to, q) + product(at(from, q), root), q)
            end
        end
        @vector for q in 0:side-1
            put!(to, product(at(to, q), turn), q)
        end
    end
end

"""
Lengths with large prime factors, by Bluestein's convolution: as jk = (j² + k² - (k-j)²)/2, the sum
is cₖ Σⱼ (xⱼ cⱼ) c̄ₖ₋ⱼ with cⱼ = e^(± πi j²/n) (Bluestein 1970), done in length m ≥ 2n - 1. `chirp`
holds c, `filter` the transform of its conjugate over m; a, b, spare hold m numbers each."""
@noinline function chirp_transform!(y::Ptr{C}, x::Ptr{C}, (a, b, spare)::NTuple{3,Ptr{C}},
    (chirp, filter, roots)::NTuple{3,Ptr{C}}, radices::R, m::Int, before::Int, along::Int,
    after::Int) where {C,R<:Tuple}
    for l in 0:before-1, i in 0:after-1
        line = l * along * after + i
        for j in 0:m-1
            put!(a,
                j < along ?
                product(at(x, line + min(j, along - 1) * after),
                    at(chirp, min(j, along - 1))) : zero(C), j)
        end
        transform_lines!(b, a, spare, roots, radices, m, 1)
        for j in 0:m-1      # the conjugate transform of a conjugate is the inverse one's conjugate
            put!(b, conj(product(at(b, j), at(filter, j))), j)
        end
        transform_lines!(a, b, spare, roots, radices, m, 1)
        for k in 0:along-1
            put!(y, product(conj(at(a, k)), at(chirp, k)), line + k * after)
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

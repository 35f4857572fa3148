# Quotients of complex numbers over the whole range, against rational arithmetic.

using JaxprAD: NumberMath

"A complex number whose parts have any finite exponent, or near ones, or of which one is zero."
function any_complex(rng, T)
    finite() = (x = reinterpret(T, rand(rng, T === Float32 ? UInt32 : UInt64));
        isfinite(x) ? x : finite())
    x = finite()
    y = rand(rng, Bool) ? finite() : ldexp(x * T(randn(rng)), -rand(rng, 0:3))
    rand(rng, 1:8) == 1 ? complex(x, zero(T)) : rand(rng, 1:8) == 1 ? complex(zero(T), x) :
    complex(x, isfinite(y) ? y : x)
end
widest(z) = complex(big(real(z)), big(imag(z)))
bigger_part(z) = max(abs(real(z)), abs(imag(z)))

@testset "z / w is right where it is in range, $T" for T in (Float32, Float64)
    rng, checked = seeded("quotients"), 0
    setprecision(BigFloat, 4400) do
        for _ in 1:4000
            z, w = any_complex(rng, T), any_complex(rng, T)
            w == 0 && continue
            exact = (a = widest(z); b = widest(w);
                complex(real(a) * real(b) + imag(a) * imag(b),
                    imag(a) * real(b) - real(a) * imag(b)) / (real(b)^2 + imag(b)^2))
            size = bigger_part(exact)
            q = NumberMath.quotient(z, w)
            if size < floatmax(T) / 2
                checked += 1
                @test bigger_part(widest(q) - exact) <= max(4eps(T) * size, 2nextfloat(zero(T)))
            elseif size > 2floatmax(T)
                @test !isfinite(bigger_part(q)) || isnan(q)
            end
        end
    end
    @test checked > 2000
end

@testset "quotients by 0 and ∞, $T" for T in (Float32, Float64)
    by(z, w) = NumberMath.quotient(Complex{T}(z), Complex{T}(w))
    @test isequal(by(1 - 2im, 0), complex(T(Inf), T(-Inf)))
    @test isequal(by(1 - 2im, complex(-0.0, 0.0)), complex(T(-Inf), T(Inf)))
    @test isequal(by(1, 0), complex(T(Inf), T(NaN))) && isnan(by(0, 0)) && isnan(by(1, NaN))
    for w in (complex(Inf, 1.5), complex(-1.5, -Inf), complex(Inf, Inf), complex(NaN, Inf))
        @test by(2 - 3im, w) == 0
        @test NumberMath.integer_pow(Complex{T}(w), Val(-1)) == 0
    end
    @test NumberMath.integer_pow(complex(T(Inf), T(2)), Val(1)) === complex(T(Inf), T(2))
end

@testset "quotients of arrays, natively" begin
    p = program("(%0: c64[n], %1: c64[n]) { %2: c64[n] = div %0 %1 return %2 }" |>
                text -> replace(text, "n]" => "2000]"))
    @test heap_free(p)
    z, w = fill(1f30 + 1f20im, 2000), fill(1f10 + 1f0im, 2000)
    q = JaxprAD.run(JaxprAD.compile(p), p, Any[z, w])[1]
    @test maximum(abs.(q .- ComplexF64.(z) ./ ComplexF64.(w))) < 2f-7 * 1f20
    ones_ = fill(1f0 + 0f0im, 2000)
    z̄, w̄ = run(JaxprAD.vjp(p), Any[z, w, ones_])
    @test all(isfinite, z̄) && all(isfinite, w̄)
    @test maximum(abs.(w̄ .+ ComplexF64.(z) ./ ComplexF64.(w) .^ 2)) < 1f-6 * 1f10
end

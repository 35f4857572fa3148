include("../support/fourier_sums.jl")

r = seeded("fourier")
fft(x, y, kind, lengths) = "(%0: $x) { %1: $y = fft %0 {fft_type=$kind, fft_lengths=$lengths} return
  %1 }"

for n in (1, 2, 3, 6, 7, 8, 15)
    m = n ÷ 2 + 1
    check(fft("c128[$n]", "c128[$n]", "fft", [n]), randn(r, ComplexF64, n);
        reference = x -> (direct(x, -1),), second = n == 6)
    check(fft("c128[$n]", "c128[$n]", "ifft", [n]), randn(r, ComplexF64, n);
        reference = x -> (direct(x, 1) ./ n,), second = n == 6)
    check(fft("f64[$n]", "c128[$m]", "rfft", [n]), randn(r, n);
        reference = x -> (direct(x, -1)[1:m],), second = n == 6)
    mirrored(z) =
        ComplexF64[
            k == 0 || 2k == n ? real(z[k+1]) : 2k < n ? z[k+1] : conj(z[n-k+1])
            for k in 0:n-1
        ]
    check(fft("c128[$m]", "f64[$n]", "irfft", [n]), randn(r, ComplexF64, m);
        reference = z -> (real(direct(mirrored(z), 1)) ./ n,), second = n == 6)
end
check(fft("c128[2,3,4]", "c128[2,3,4]", "fft", [3, 4]), randn(r, ComplexF64, 4, 3, 2);
    reference = x -> (by_sums(x, (1, 2)),), name = "two axes")
check(fft("f64[2,3,4]", "c128[2,3,3]", "rfft", [2, 3, 4]), randn(r, 4, 3, 2);
    reference = x -> (by_sums(x, (1, 2, 3))[1:3, :, :],),
    name = "rfft over three axes")
check(fft("c128[3,3]", "f64[3,4]", "irfft", [3, 4]), randn(r, ComplexF64, 3, 3);
    name = "irfft over two axes")
check_value(fft("c64[0,2]", "c64[0,2]", "fft", [2]), x -> (x,), zeros(ComplexF32, 2, 0))
check_value(fft("f32[2]", "c64[2]", "rfft", [2]), x -> (ComplexF32[3, -1],), Float32[1, 2])
@test refuses(fft("f64[4]", "f64[4]", "fft", [4]))
@test refuses(fft("c128[4]", "c128[4]", "fft", [3]))
@test refuses(fft("c128[4]", "c128[4]", "dct", [4]))

@testset "lengths with a large prime factor take no time that is quadratic" begin
    for T in (Float32, Float64), n in (67, 2 * 67, 6 * 101), sign in (-1, 1)
        x = randn(r, Complex{T}, n)
        y = JaxprAD.dft(x, sign)
        @test y isa Vector{Complex{T}}
        @test maximum(abs.(y - direct(ComplexF64.(x), sign))) < 32eps(T) * maximum(abs.(y))
    end
    x = randn(r, ComplexF64, 99991)
    y = JaxprAD.dft(x, -1)
    @test least_seconds(() -> JaxprAD.dft(x, -1)) < 10
    @test maximum(abs.(JaxprAD.dft(y, 1) ./ 99991 - x)) < 1e-13
    @test y[5] ≈ sum(x .* cis.(-2π .* mod.(4 .* (0:99990), 99991) ./ 99991))
end

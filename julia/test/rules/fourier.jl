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

# Lines side by side or one after the other, more than go at once, along axes of all lengths: even
# ones of real lines are transformed by halves.
for (kind, x, y, lengths) in (
    ("rfft", "f64[5,64]", "c128[5,33]", [64]), ("rfft", "f64[33,16]", "c128[33,9]", [33, 16]),
    ("rfft", "f64[3,20,6]", "c128[3,20,4]", [20, 6]), ("rfft", "f64[4,26]", "c128[4,14]", [26]),
    ("rfft", "f64[2,34]", "c128[2,18]", [34]), ("rfft", "f64[9,15]", "c128[9,8]", [9, 15]),
    ("irfft", "c128[5,33]", "f64[5,64]", [64]), ("irfft", "c128[33,9]", "f64[33,16]", [33, 16]),
    ("irfft", "c128[4,14]", "f64[4,26]", [26]), ("irfft", "c128[2,18]", "f64[2,34]", [34]),
    ("irfft", "c128[9,8]", "f64[9,15]", [9, 15]), ("fft", "c128[40,3]", "c128[40,3]", [40, 3]),
    ("fft", "c128[2,50,7]", "c128[2,50,7]", [50, 7]), ("ifft", "c128[300,8]", "c128[300,8]", [8]),
    ("ifft", "c128[4096]", "c128[4096]", [4096]),
    ("fft", "c128[3,600,40]", "c128[3,600,40]", [600, 40]))

    @testset "$kind of $x" begin
        p = program(fft(x, y, kind, lengths))
        @test native_agrees(p, Any[normal(r, v.type.dtype, Int.(v.type.shape)) for v in p.inputs])
        single(t) = replace(replace(t, "f64" => "f32"), "c128" => "c64")
        p = program(fft(single(x), single(y), kind, lengths))
        @test native_agrees(p, Any[normal(r, v.type.dtype, Int.(v.type.shape)) for v in p.inputs])
        @test heap_free(p)
    end
end
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

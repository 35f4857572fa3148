# Small nests without loops: divisions in arrays whose rows are shorter than a vector register.

"Quotients that are kept, and their products' sums along `axes`."
function quotients(T, n, axes)
    type(n) = "$T[$(join(n, ","))]"
    rest = [n[k] for k in 1:3 if !(k - 1 in axes)]
    """(%0: $(type(n)), %1: $(type(n[1:2])), %2: $(type(n[2:3]))) {
      %3: $(type(n)) = broadcast_in_dim %1 {shape=$n, dims=[0, 1]}
      %4: $(type(n)) = broadcast_in_dim %2 {shape=$n, dims=[1, 2]}
      %5: $(type(n)) = sub %0 %4
      %6: $(type(n)) = div %5 %3
      %7: $(type(n)) = mul %6 %0
      %8: $(type(rest)) = reduce_sum %7 {axes=$axes}
      return %6 %8 }"""
end
sample(T, n) = randn(T, Tuple(reverse(n)))
"How many quotients the kernel's code has."
function divisions(text)
    stages = (name, stage, x) -> stage(x)
    definitions, _ = JaxprAD.kernel_code(stages, program(text))
    length(collect(eachmatch(r"div_float", string(definitions))))
end

@testset "quotients of $T$n, sums along $axes" for T in (Float32, Float64),
    n in ([4, 4, 3], [1, 5, 2], [3, 1, 3], [5, 4, 3]), axes in ([0], [1], [2], [0, 2])

    text = quotients(T === Float32 ? "f32" : "f64", n, axes)
    x = sample(T, n), 2 .+ abs.(sample(T, n[1:2])), sample(T, n[2:3])
    @test native_agrees(text, x...)
    @test heap_free(text)
    all(>(1), n) && @test divisions(text) == prod(n)
end

@testset "longer rows and larger arrays have loops" for n in ([4, 4, 8], [6, 5, 3])
    @test divisions(quotients("f64", n, [1])) == 1
end

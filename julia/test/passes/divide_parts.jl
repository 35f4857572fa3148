# Quotients of complex numbers by real ones: which there are, and that values stay.

using JaxprAD: divide_parts

r = seeded("divide parts")
divided(text) = names_in(divide_parts(program(text)))

for (T, t, c) in ((Float32, "f32", "c64"), (Float64, "f64", "c128")), n in (1, 7, 100)
    @testset "$c[$n]" begin
        z, x = normal(r, Complex{T}, [n]), normal(r, T, [n])
        text = """(%0: $c[$n], %1: $t[$n]) { %2: $c[$n] = convert_element_type %1 {dtype=$c}
          %3: $c[$n] = div %0 %2 return %3 }"""
        @test divided(text) == [:real, :div, :imag, :div, :complex]
        @test native_agrees(program(text), Any[z, x])
        text = "(%0: $c[$n]) { %1: $c[$n] = div %0 (3.0,0.0):$c return %1 }"
        @test divided(text) == [:real, :div, :imag, :div, :complex]
        @test native_agrees(program(text), Any[z])
    end
end

@testset "scalars, and within loops" begin
    text = """(%0: c128[], %1: f64[]) { %2: c128[] = scan %1 %0 {length=3, reverse=false, consts=1,
      carry=1, unroll=1, body=(%0: f64[], %1: c128[]) {
        %2: c128[] = convert_element_type %0 {dtype=c128} %3: c128[] = div %1 %2 return %3 }}
      return %2 }"""
    body = only(divide_parts(program(text)).equations)[:body]
    @test names_in(body) == [:real, :div, :imag, :div, :complex]
    @test native_agrees(text, fill(2.0 + 3.0im), fill(0.7))
end

@testset "others stay" begin
    for equation in ("div %0 %1", "div %0 (3.0,1.0):c128", "mul %0 (3.0,0.0):c128",
        "div (1.0,0.0):c128 %0")

        text = "(%0: c128[2], %1: c128[2]) { %2: c128[2] = $equation return %2 }"
        @test length(divided(text)) == 1
    end
    @test divided("(%0: f64[2]) { %1: f64[2] = div %0 3.0:f64 return %1 }") == [:div]
end

# a b + c in one: which products are taken into sums, and that values stay.

using JaxprAD: contract_products

contracted_names(text) = names_in(contract_products(program(text)))
body(lines, x = "f64[3]") = "(%0: $x, %1: $x, %2: $x) { $lines }"
"Values before and after; integers in floats, so that rounding changes nothing."
function same_values(text)
    p = program(text)
    x = Any[asarray(map(v -> Float64(rand(-9:9)), zeros(reverse(Int.(v.type.shape))...)))
        for v in p.inputs]
    native_agrees(p, x; tolerance = 0)
end

@testset "$f of a product" for (f, sign) in ("add %3 %2" => [], "add %2 %3" => [],
        "sub %3 %2" => [:neg], "sub %2 %3" => [:neg]), x in ("f64[3]", "f64[]", "f32[2,2]")

    text = body("%3: $x = mul %0 %1 %4: $x = $f return %4", x)
    @test contracted_names(text) == vcat(sign, [:multiply_add])
    x == "f32[2,2]" || @test same_values(text)
end

@testset "squares, and literals" begin
    for square in ("square %0", "integer_pow %0 {y=2}")
        text = body("%3: f64[3] = $square %4: f64[3] = add %3 %2 return %4")
        @test contracted_names(text) == [:multiply_add]
        @test same_values(text)
    end
    text = body("%3: f64[3] = mul 2.0:f64 %1 %4: f64[3] = sub %2 %3 return %4")
    @test contracted_names(text) == [:multiply_add]     # the literal takes the sign
    @test same_values(text)
    text = body("%3: f64[3] = mul %0 %1 %4: f64[3] = sub %3 1.0:f64 return %4")
    @test contracted_names(text) == [:multiply_add]
    @test same_values(text)
end

@testset "products that something else reads stay" begin
    @test contracted_names(body("%3: f64[3] = mul %0 %1 %4: f64[3] = add %3 %2 return %4 %3")) ==
          [:mul, :add]
    @test contracted_names(body("""%3: f64[3] = mul %0 %1 %4: f64[3] = add %3 %2
      %5: f64[3] = sub %3 %1 return %4 %5""")) == [:multiply_add, :neg, :multiply_add]
    for x in ("f64[3]", "f64[]")
        numbers = body("%3: $x = mul %0 %1 %4: $x = add %3 %2 return %4 %3", x)
        @test contracted_names(numbers) == [:mul, :add]
        # a product less itself
        difference = body("%3: $x = mul %0 %1 %4: $x = sub %3 %3 return %4", x)
        @test contracted_names(difference) == [:mul, :sub]
        twice = body("""%3: $x = div %0 3.0:f64 %4: $x = div %0 3.0:f64
          %5: $x = sub %3 %4 return %5""", x)
        @test contracted_names(twice) == [:mul, :mul, :sub]
    end
end

@testset "sums of products, of other numbers and in loops" begin
    @test contracted_names(body("""%3: f64[3] = mul %0 %1 %4: f64[3] = mul %1 %2
      %5: f64[3] = add %3 %4 return %5""")) == [:mul, :multiply_add]
    @test contracted_names(body("%3: c128[3] = mul %0 %1 %4: c128[3] = add %3 %2 return %4",
        "c128[3]")) == [:mul, :add]
    @test contracted_names(body("%3: i32[3] = mul %0 %1 %4: i32[3] = add %3 %2 return %4",
        "i32[3]")) == [:mul, :add]
    loop = contract_products(program("""(%0: f64[3], %1: f64[3]) {
      %2: f64[3] = scan %1 %0 {length=4, reverse=false, consts=1, carry=1, unroll=1,
        body=(%0: f64[3], %1: f64[3]) { %2: f64[3] = mul %0 %1 %3: f64[3] = add %2 %1 return %3 }}
      return %2 }"""))
    @test names_in(loop.equations[1][:body]) == [:multiply_add]
end

@testset "quotients by literals" begin
    @test contracted_names(body("%3: f64[3] = div %0 5.0:f64 return %3")) == [:mul]
    @test contracted_names(body("%3: f64[3] = div %0 5.0:f64 %4: f64[3] = add %1 %3 return %4")) ==
          [:multiply_add]
    for (c, type) in ("0.0:f64" => "f64[3]", "inf:f64" => "f64[3]", "1e308:f64" => "f64[3]",
            "3:i32" => "i32[3]")
        @test contracted_names("(%0: $type) { %1: $type = div %0 $c return %1 }") == [:div]
    end
    @test contracted_names("(%0: f64[3]) { %1: f64[3] = div 5.0:f64 %0 return %1 }") == [:div]
    text = body("%3: f64[3] = div %0 8.0:f64 return %3")
    @test same_values(text)
    @test native_agrees(body("%3: f64[3] = div %0 -5.3:f64 return %3"), (randn(3) for _ in 1:3)...)
end

# Products of few rows or columns, by tiles of registers of any width, in every layout.

r = seeded("thin products")
attributes(x, y, T) = "lhs_contract=[$x], rhs_contract=[$y], lhs_batch=[], rhs_batch=[], " *
    "dtype=$T, precision=none"
kind(text) = JaxprAD.product_kind(
    JaxprAD.Frame(JaxprAD.Generator(1), JaxprAD.plan(program(text))),
    only(program(text).equations))
function product(T, m, n, k, x_first, y_first)
    x, y = x_first ? "$m,$k" : "$k,$m", y_first ? "$k,$n" : "$n,$k"
    "(%0: $T[$x], %1: $T[$y]) { %2: $T[$m,$n] = dot_general %0 %1 {" *
    "$(attributes(x_first ? 1 : 0, y_first ? 0 : 1, T))} return %2 }"
end
# The last eight are large enough for threads, which share rows or columns; of two the right matrix
# is fetched ahead, and the last goes to BLAS.
sizes = ((2, 40, 33), (7, 70, 100), (8, 1000, 131), (9, 65, 2000), (32, 33, 600), (33, 7, 300),
    (8, 1001, 300), (1001, 8, 300), (130, 140, 150), (300, 40, 200), (8, 97, 2700),
    (8, 4205, 1003), (5, 1003, 4205), (100, 150, 301))
@testset "$T, $m × $k × $n, layouts $x_first $y_first" for (T, N) in (("f32", Float32),
            ("f64", Float64)), (m, n, k) in sizes, x_first in (true, false),
        y_first in (true, false)
    text = product(T, m, n, k, x_first, y_first)
    p = program(text)
    inputs = Any[normal(r, N, Int.(JaxprAD.shape(v))) for v in p.inputs]
    @test relative_error(run(p, inputs), JaxprAD.run(JaxprAD.compile(p), p, inputs)) < k * eps(N)
end

@testset "which products go by tiles" begin
    @test kind(product("f32", 8, 1000, 3000, true, true)) isa JaxprAD.TileProduct
    @test kind(product("f32", 8, 3000, 1000, true, false)) == JaxprAD.RowsProduct(true)
    @test kind(product("f32", 8, 3000, 1000, false, false)) == JaxprAD.RowsProduct(true)
    @test kind(product("f32", 3000, 8, 1000, true, false)) == JaxprAD.RowsProduct(false)
    @test kind(product("f32", 1000, 8, 3000, true, true)) isa JaxprAD.TileProduct
    @test kind(product("f64", 100, 1000, 3000, true, true)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 200, 1000, 3000, true, true)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 200, 1000, 3000, true, false)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 32, 1000, 3000, true, false)) == JaxprAD.RowsProduct(true)
    @test kind(product("f64", 32, 1000, 3000, true, false)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 64, 64, 1000, true, false)) == JaxprAD.RowsProduct(false)
    @test kind(product("f32", 200, 1000, 3000, false, false)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 200, 1000, 200, true, false)) isa JaxprAD.BlasProduct
    @test kind(product("f32", 16, 64, 512, true, false)) == JaxprAD.RowsProduct(true)
    @test kind(product("f32", 128, 128, 128, true, false)) isa JaxprAD.TileProduct
    @test kind(product("f64", 100, 2000, 7, true, false)) isa JaxprAD.TileProduct
end

@testset "registers of $bytes bytes" for bytes in (16, 32, 64)
    p = program(product("f64", 9, 70, 50, true, true))
    target = JaxprAD.KernelTarget(bytes)
    definitions, workspace = JaxprAD.kernel_code(p) do name, stage, x
        name === :lower ? JaxprAD.lower(x; target = target) : stage(x)
    end
    k = JaxprAD.Kernel(JaxprAD.load_code(definitions), workspace, Expr(:block, definitions...))
    inputs = Any[normal(r, Float64, Int.(JaxprAD.shape(v))) for v in p.inputs]
    @test relative_error(run(p, inputs), JaxprAD.run(k, p, inputs)) < 1e-14
    @test occursin("TiledProduct{$(bytes ÷ 8)}", string(definitions...))
end

@testset "what registers a processor has" begin
    @test JaxprAD.register_bytes(JaxprAD.Processor("x86-64-v4", "")) == 64
    @test JaxprAD.register_bytes(JaxprAD.Processor("skylake-avx512", "")) == 64
    @test JaxprAD.register_bytes(JaxprAD.Processor("haswell", "+avx2,-avx512f")) == 32
    @test JaxprAD.register_bytes(JaxprAD.Processor("any", "+avx2,+avx512f")) == 64
end

# Products without transposed copies of their factors.

r = seeded("absorb_transposes")
names(text) = names_in(JaxprAD.absorb_transposes(program(text)))
same(text, x...) = run(JaxprAD.absorb_transposes(program(text)), x) == run(program(text), x)

dot(attributes) = "dot_general %0 %2 {$attributes, dtype=f64, precision=none}"
const PLAIN = "lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[]"

@testset "a transposed factor" begin
    text = "(%0: f64[8,30], %1: f64[50,30]) { %2: f64[30,50] = transpose %1 {perm=[1, 0]}
        %3: f64[8,50] = $(dot(PLAIN)) return %3 }"
    @test names(text) == [:dot_general]
    @test same(text, randn(r, 30, 8), randn(r, 30, 50))
    @test native_agrees(text, randn(r, 30, 8), randn(r, 30, 50))
    # read as it lies, too, by what does not transpose it
    twice = replace(text, "return %3" => "%4: f64[30,50] = sin %2 return %3 %4")
    @test sort(names(twice)) == [:dot_general, :sin, :transpose]
end

@testset "both factors" begin
    text = "(%0: f64[30,8], %1: f64[50,30]) { %2: f64[30,50] = transpose %1 {perm=[1, 0]}
        %3: f64[8,30] = transpose %0 {perm=[1, 0]}
        %4: f64[8,50] = dot_general %3 %2 {$PLAIN, dtype=f64, precision=none}
        %5: f64[50,8] = transpose %4 {perm=[1, 0]} return %5 }"
    @test names(text) == [:dot_general, :transpose]
    @test same(text, randn(r, 8, 30), randn(r, 30, 50))
    @test native_agrees(text, randn(r, 8, 30), randn(r, 30, 50))
end

@testset "stacks of matrices, and axes that change places among each other" begin
    batch = "lhs_contract=[2], rhs_contract=[1], lhs_batch=[0], rhs_batch=[0]"
    text = "(%0: f64[4,8,30], %1: f64[50,4,30]) { %2: f64[4,30,50] = transpose %1 {perm=[1, 2, 0]}
        %3: f64[4,8,50] = $(dot(batch)) return %3 }"
    @test names(text) == [:dot_general]
    @test same(text, randn(r, 30, 8, 4), randn(r, 30, 4, 50))
    free = "(%0: f64[8,30], %1: f64[5,7,30]) { %2: f64[30,7,5] = transpose %1 {perm=[2, 1, 0]}
        %3: f64[8,7,5] = $(dot(PLAIN)) return %3 }"
    @test names(free) == [:transpose, :dot_general]
end

@testset "in the bodies of loops" begin
    p = program("(%0: f64[8,8], %1: f64[8,8]) {
        %2: f64[8,8] = scan %1 %0 {length=3, reverse=false, consts=1, carry=1, unroll=1,
          body=(%0: f64[8,8], %1: f64[8,8]) {
            %2: f64[8,8] = transpose %0 {perm=[1, 0]}
            %3: f64[8,8] = dot_general %1 %2 {$PLAIN, dtype=f64, precision=none}
            return %3 }} return %2 }")
    @test names_in(JaxprAD.absorb_transposes(p).equations[1][:body]) == [:dot_general]
end

# What stages of long code do alike is one function.

"""
`n` stages, one after the other, each of which takes a row of `%0`, by a number of its own, and the
sum of the stage before. `formula(stage, row, before)` gives its lines, the last of which is the
variable that is its result; stages of one `kind(k)` differ in numbers and rows alone."""
function staged(n, formulas, kind)
    lines, k, before, results = String[], 1, "%1", String[]
    link(ex) = (push!(lines, "%$(k += 1): $ex"); "%$k")
    for i in 1:n
        row = link("f64[1,5] = slice %0 {start=[$(i - 1), 0], limit=[$i, 5], strides=[1, 1]}")
        row = link("f64[5] = reshape $row {shape=[5]}")
        b = link("f64[5] = broadcast_in_dim $before {shape=[5], dims=[]}")
        x = formulas[kind(i)](link, row, b, i)
        push!(results, x)
        # so small that rounding does not grow from stage to stage
        before = link("f64[] = mul 0.1:f64 $(link("f64[] = reduce_sum $x {axes=[0]}"))")
    end
    "(%0: f64[$n,5], %1: f64[]) { $(join(lines, "\n")) return $(join(results, " ")) $before }"
end
const FORMULAS = (
    (link, x, b, i) -> link("f64[5] = sin $(link("f64[5] = add $x $b"))"),
    (link, x, b, i) -> link("f64[5] = mul $(1 + i / 7):f64 $(link("f64[5] = tanh $b"))"),
    (link, x, b, i) -> begin
        y = link("f64[5] = cos $b")
        x = link("f64[5] = mul $(0.5 + i / 100):f64 $x")
        # read in another order, so that there is a second stage
        y = link("f64[5] = rev $(link("f64[5] = cumsum $y {axis=0, reverse=false}")) {dims=[0]}")
        link("f64[5] = add $x $(link("f64[5] = mul $y 0.125:f64"))")
    end,
)

is_shared(definition) =
    occursin("_shared_", string(JaxprAD.definition_name(definition)))
shared(text) = filter(is_shared, JaxprAD.kernel_code(program(text))[1])
r = seeded("shared functions")

@testset "$n stages of $count kinds" for (n, count) in ((4, 1), (80, 1), (90, 2), (90, 3))
    text = staged(n, FORMULAS, i -> mod1(i, count))
    @test isempty(shared(text)) == (n == 4)
    @test length(shared(text)) <= 3count
    @test native_agrees(text, randn(r, 5, n), 0.3)
    @test heap_free(text)
end

@testset "kinds by chance, also in files" begin
    for _ in 1:3
        kinds = rand(r, 1:3, 70)
        text = staged(length(kinds), FORMULAS, i -> kinds[i])
        @test !isempty(shared(text))
        x = Any[randn(r, 5, length(kinds)), fill(randn(r))]
        @test native_agrees(program(text), x)
        linker() === nothing ||
            @test native_agrees(program(text), x; kernel = first(file_kernel(program(text))))
    end
end

@testset "many arguments" begin
    # two sums of 150 arguments each, the second of which needs the first
    n = 150
    arguments = join(("%$k: f64[8]" for k in 0:2n-1), ", ")
    lines, k, before = String[], 2n, "%$(2n)"
    link(ex) = (push!(lines, "%$(k += 1): $ex"); "%$k")
    for part in 0:1
        b = link("f64[8] = broadcast_in_dim $before {shape=[8], dims=[]}")
        terms = [link("f64[8] = mul %$(part * n + i) $b") for i in 0:n-1]
        before = link("f64[] = reduce_sum $(foldl((a, b) -> link("f64[8] = add $a $b"), terms)) " *
                      "{axes=[0]}")
    end
    text = "($arguments, %$(2n): f64[]) { $(join(lines, "\n")) return $before }"
    @test length(shared(text)) == 1
    @test native_agrees(text, (randn(r, 8) for _ in 1:2n)..., 0.1)
end

@testset "how often a loop runs is no argument" begin
    # windows of 5 and of 6 numbers: two functions, with the numbers of trips that LLVM knows
    windows = [(7i, 5 + i % 2) for i in 0:99]
    lines, k, sum = String[], 0, "0.0:f64"
    for (start, size) in windows
        push!(lines, "%$(k + 1): f64[$size] = slice %0 {start=[$start], limit=[$(start + size)], " *
                     "strides=[1]} %$(k + 2): f64[$size] = sin %$(k + 1) " *
                     "%$(k + 3): f64[] = reduce_sum %$(k + 2) {axes=[0]} " *
                     "%$(k + 4): f64[] = add %$(k + 3) $sum")
        k, sum = k + 4, "%$(k + 4)"
    end
    text = "(%0: f64[707]) { $(join(lines, "\n")) return $sum }"
    @test 2 <= length(shared(text)) <= 4
    @test native_agrees(text, randn(r, 707))
end

@testset "numbers of several stretches" begin
    lists = [Number[1, 0.5, 10, 30, 0.5, UInt(3)], Number[1, 0.25, 14, 34, 0.25, UInt(4)]]
    numbers, given = JaxprAD.shared_numbers(lists)
    @test given == [[0.5, 10, UInt(3)], [0.25, 14, UInt(4)]]
    a, b, c = JaxprAD.number_argument.(1:3)
    @test numbers == Any[1, a, b, :($(Core.Intrinsics.add_int)($b, 20)), a, c]
    # 0.0 is not -0.0, and the difference of 1.0 and 2.0 is not used, since it is rounded
    numbers, given = JaxprAD.shared_numbers([Number[0.0, 1.0], Number[-0.0, 2.0]])
    @test length(given[1]) == 2 && numbers == Any[a, b]
end

# Loops with long bodies, of which stretches are functions: in loops, loops in loops, branches, on
# threads, and with what has to stay in the loop among them.

"""
`n` equations by chance on arrays of shape [40,30], from the atoms `x` and `y`: elementwise, along
rows and columns, in other orders. Gives the lines and the last result."""
function equations_by_chance(r, n, x, y, next)
    lines, known = String[], [x, y]
    link(type, ex) = (v = "%$(next[] += 1)"; push!(lines, "$v: f64$type = $ex"); v)
    whole(ex) = link("[40,30]", ex)
    rows(v) = whole("broadcast_in_dim $(link("[40]", v)) {shape=[40, 30], dims=[0]}")
    columns(v) = whole("broadcast_in_dim $(link("[30]", v)) {shape=[40, 30], dims=[1]}")
    small(v, factor = "0.3") = whole("mul $factor:f64 $v")        # so that errors do not grow
    kinds = (
        (a, b) -> whole("sin $(small(whole("add $a $b")))"),
        (a, b) -> whole("tanh $(small(whole("sub $a $b")))"),
        (a, b) -> whole("rev $(whole("cumsum $(small(b, "0.02")) {axis=0, reverse=false}")) " *
                        "{dims=[1]}"),
        (a, b) -> small(rows("reduce_max $b {axes=[1]}")),
        (a, b) -> small(columns("reduce_sum $b {axes=[0]}"), "0.02"),
    )
    for _ in 1:n
        push!(known, rand(r, kinds)(rand(r, known), last(known)))
    end
    lines, last(known)
end
"The carry of a scan; `body(y, next)` gives the body's lines and its result."
function scanned(body, trips, next, x, y)
    v = "%$(next[] += 1)"
    lines, result = body("%1", next)
    "$v: f64[40,30] = scan $x $y {length=$trips, reverse=false, consts=1, carry=1, unroll=1, " *
    "body=(%0: f64[40,30], %1: f64[40,30]) { $(join(lines, "\n")) return $result }}", v
end
const SHAPES = (
    once = (r, n, x, y, next) -> equations_by_chance(r, n, x, y, next),
    scan = (r, n, x, y, next) -> begin
        line, v = scanned((y, next) -> equations_by_chance(r, n, "%0", y, next), 3, next, x, y)
        [line], v
    end,
    nested = (r, n, x, y, next) -> begin
        line, v = scanned(3, next, x, y) do y, next
            before, z = equations_by_chance(r, n ÷ 2, "%0", y, next)
            inner, z = scanned(2, next, "%0", z) do y, next
                equations_by_chance(r, n, "%0", y, next)
            end
            after, z = equations_by_chance(r, n ÷ 2, "%0", z, next)
            [before; inner; after], z
        end
        [line], v
    end,
    ended = (r, n, x, y, next) -> begin     # by what a test finds in the middle of the loop
        k, v = "%$(next[] += 1)", "%$(next[] += 1)"
        lines, result = equations_by_chance(r, n, "%0", "%2", next)
        ["$k: i32[], $v: f64[40,30] = while $x 0:i32 $y {cond_consts=0, body_consts=1, " *
         "bound=none, cond=(%1: i32[], %2: f64[40,30]) { %3: bool[] = lt %1 4:i32 return %3 }, " *
         "body=(%0: f64[40,30], %1: i32[], %2: f64[40,30]) { %3: i32[] = add %1 1:i32 " *
         "$(join(lines, "\n")) return %3 $result }}"], v
    end,
)
function long_text(shape, r, n)
    next = Ref(10)
    lines, v = SHAPES[shape](r, n, "%0", "%1", next)
    "(%0: f64[40,30], %1: f64[40,30]) { $(join(lines, "\n")) return $v }"
end
isbody_function(definition) = occursin("_body_", string(JaxprAD.definition_name(definition)))
lengths(definitions) = [JaxprAD.statements(JaxprAD.body_of(d)) for d in definitions]

@testset "$shape, $n equations" for shape in keys(SHAPES), n in (4, 60)
    r = seeded("bodies $shape $n")
    p = program(long_text(shape, r, n))
    definitions, _ = JaxprAD.kernel_code(p)
    n > 4 && shape !== :once && @test any(isbody_function, definitions)
    @test maximum(lengths(definitions)) < 5JaxprAD.LONGEST_FUNCTION
    x = Any[randn(r, 30, 40), randn(r, 30, 40)]
    @test native_agrees(p, x; tolerance = 1e-12)
    @test heap_free(program_text(p))
    n > 4 && linker() !== nothing &&
        @test native_agrees(p, x; kernel = first(file_kernel(p)), tolerance = 1e-12)
end

@testset "straight code stays in its loop" begin
    n = 400
    lines = ["%$(k + 1): f64[] = $(iseven(k) ? "sin %$k" : "add %$k %0")" for k in 1:n]
    text = "(%0: f64[], %1: f64[]) { %2: f64[] = scan %0 %1 {length=3, reverse=false, consts=1, " *
           "carry=1, unroll=1, body=(%0: f64[], %1: f64[]) { $(join(lines, "\n")) " *
           "return %$(n + 1) }} return %2 }"
    @test !any(isbody_function, first(JaxprAD.kernel_code(program(text))))
    @test native_agrees(text, 0.3, 0.2)
end

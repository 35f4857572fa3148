# Long code in several functions, with stretches for several threads and loops among them.

"""
A chain of scalar equations, an array operation large enough for threads, a loop, and another chain;
all links are results."""
function long_program(links)
    lines, k = ["%2: f64[300,700] = mul %1 %1", "%3: f64[] = reduce_max %2 {axes=[0, 1]}"], 3
    link(ex) = (push!(lines, "%$(k += 1): f64[] = $ex"); "%$k")
    x = "%0"
    for _ in 1:links
        x = link("sin $(link("add $x 0.5:f64"))")
    end
    y = link("add $x %3")
    for _ in 1:links
        y = link("mul $(link("cos $y")) $x")
    end
    returned = join(["%$i" for i in 4:k], " ")
    "(%0: f64[], %1: f64[300,700]) { $(join(lines, "\n")) return %2 $returned }"
end

@testset "$links links" for links in (10, 200, 600)
    text = long_program(links)
    @test native_agrees(text, randn(), randn(700, 300))
    definitions, workspace = JaxprAD.kernel_code(program(text))
    @test (count(JaxprAD.holds_loop, definitions) < length(definitions) - 1) == (links > 100)
    @test heap_free(text)
end

# Which sources mean the same in every process.

using JaxprAD.Functions: selfcontained

const ALONE = [
    "f(x) = sin.(x) .+ 1",
    "using JaxprAD\nf(x) = while_loop(y -> y < 1, y -> 2y, x)",
    "using JaxprAD: select\nf(x) = JaxprAD.cond(select(x > 0, true, false), sin, cos, x)",
    "using LinearAlgebra\nf(x) = norm(x) * LinearAlgebra.tr(x)",
    "\"doc\"\nfunction f(x; k = 2)\n@inbounds for i in 1:3\nx += i\nend\nx\nend",
    "struct Model{T}\nrate::T\nend\nf(x) = Model(x).rate",
    "f(x) = \"\$x of them\" == \"\" ? 1 : :name",
    "f(A) = [i + j for i in 1:2, j in 1:3] .+ A'",
    "const TABLE = reshape(sin.(1:120), 10, 12)\nf(x) = TABLE * x",
]
const NOT_ALONE = [
    "f(x) = read(x)", "const T = open(\"data.csv\")\nf(x) = x", "include(\"other.jl\")",
    "using Foo\nf(x) = x", "using Foo.Bar", "import Random: seed!", "using JaxprAD: evaluate",
    "f(x) = x .+ rand()", "f(x) = x + time()", "f(x) = x * Threads.nthreads()",
    "f(x) = ccall(:g, Int, ())", "f(x) = `ls`", "f(x) = Main.y * x", "f(x) = Base.read(x)",
    "f(x) = LinearAlgebra.Libdl.dlopen(x)", "using LinearAlgebra\nf(x) = BLAS.get_num_threads()",
    "const L = LinearAlgebra\nf(x) = L.Libdl.dlopen(x)", "f(x) = getfield(x, :read)",
    "f(x) = eval(Meta.parse(x))", "f(x) = ENV[\"X\"]", "f(x) = @__DIR__", "f(x) = @show x",
    "f(x) = VERSION > v\"1.6\" ? x : 2x", "f(x) = evaluate(x)", "f(x) = x.read", "f(x) = hash(x)",
    "module A\nf(x) = x\nend", "f(x) = (", "f(x) = objectid(x)",
    "f(x) = (typeof(f).name.module).read(x)", "f(x) = Symbol(\"re\", \"ad\") |> eval",
]

@testset "alone: $code" for code in ALONE
    @test selfcontained(code)
end
@testset "not alone: $code" for code in NOT_ALONE
    @test !selfcontained(code)
end

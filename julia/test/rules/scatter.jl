r = seeded("scatter")

"Rows of a 4×3 operand written at four indices."
scattering(op; mode = "fill", unique = false, dtype = "f64") = """
    (%0: $dtype[4,3], %1: i32[4,1], %2: $dtype[4,3]) {
      %3: $dtype[4,3] = $op %0 %1 %2 {update_window_dims=[1], inserted_window_dims=[0],
    scatter_dims_to_operand_dims=[0], operand_batching_dims=[], scatter_indices_batching_dims=[],
      mode=$mode, sorted=false,
    unique=$unique} return %3 }"""

repeated, distinct = reshape(Int32[2, 0, 9, 2], 1, 4), reshape(Int32[2, 0, -1, 3], 1, 4)
one_by_one(f; clip = false) =
    (x, i, u) -> begin
        y = copy(x)
        for (k, at) in enumerate(i)
            clip && (at = clamp(at, 0, 3))
            0 <= at < 4 && (y[:, at+1] = f.(y[:, at+1], u[:, k]))
        end
        (y,)
    end
for (op, f) in ["scatter_add" => +, "scatter_sub" => -, "scatter_min" => min, "scatter_max" => max,
    "scatter" => ((a, u) -> u)]
    check(scattering(op), randn(r, 3, 4), repeated, randn(r, 3, 4); reference = one_by_one(f),
        name = op)
    check(scattering(op; mode = "clip"), randn(r, 3, 4), repeated, randn(r, 3, 4);
        reference = one_by_one(f; clip = true), name = "$op, clip")
end
for (op, f) in ["scatter_mul" => *, "scatter" => ((a, u) -> u)]
    check(scattering(op; unique = true), randn(r, 3, 4), distinct, randn(r, 3, 4);
        reference = one_by_one(f), name = "$op, unique")
end
check(scattering("scatter_mul"), randn(r, 3, 4), repeated, randn(r, 3, 4);
    active = [true, false, false], name = "scatter_mul by its operand")
@test_throws JaxprAD.UnsupportedPrimitive vjp(program(scattering("scatter_mul")))
@test refuses(scattering("scatter_add"; mode = "wild"))

@testset "ties share the tangent of an extremum" begin
    p = program(replace(scattering("scatter_max"), "%3 }" => "%3 }"))
    x, u = zeros(3, 4), zeros(3, 4)
    ẋ, u̇ = ones(3, 4), fill(4.0, 3, 4)
    ẏ = run(jvp(p), Any[x, repeated, u, ẋ, u̇])[2]
    @test ẏ == [2.5 1 3 1; 2.5 1 3 1; 2.5 1 3 1]        # means of (1, 4), (1), (1, 4, 4), (1)
end

@testset "what is NaN attains the extremum: $op" for op in ("scatter_max", "scatter_min")
    j = jvp(program(scattering(op)))
    x, u = zeros(3, 4), zeros(3, 4)
    x[1, 2] = x[1, 3] = u[2, 1] = NaN           # not written to, written to, and written
    inputs = Any[x, repeated, u, ones(3, 4), fill(4.0, 3, 4)]
    for (y, ẏ) in (run(j, inputs), JaxprAD.run(JaxprAD.compile(j), j, inputs))
        @test findall(isnan, vec(y)) == [4, 7, 8]
        @test ẏ == [2.5 1 1 1; 2.5 1 4 1; 2.5 1 3 1]
    end
end

# Powers with integer exponents: their derivatives are those of a polynomial, of every order.

"aⁿ with n an array of that type, and its derivatives by a up to the third."
function derivatives_of_power(type)
    p = program("(%0: f64[5], %1: $type[5]) { %2: f64[5] = pow %0 %1 return %2 }")
    all_of = [p]
    for k in 1:3
        # the derivative along ones, of which the tangent is the last result
        d = jvp(all_of[end], Bool[i == 1 for i in eachindex(all_of[end].inputs)])
        b = JaxprAD.Builder()
        inputs = JaxprAD.fresh(d.inputs[1:2])
        along = JaxprAD.filled(b, JaxprAD.aval(inputs[1]), 1)
        y = JaxprAD.inline!(b, d, vcat(inputs, along))
        push!(all_of, typecheck(Program("d$k", inputs, b.equations, y[end:end])))
    end
    all_of
end
falling(n, k) = prod(Float64[n - j for j in 0:k-1])
"The k-th derivative of aⁿ: 0 where a factor is 0, whatever the power is."
derivative(a, n, k) = falling(n, k) == 0 ? 0.0 : falling(n, k) * a^(n - k)

@testset "derivatives of a power by $type" for (T, type) in (Int8 => "i8", Int32 => "i32",
    Int64 => "i64", UInt8 => "u8", UInt32 => "u32")

    for a in (0.0, -1.5), (k, p) in enumerate(derivatives_of_power(type))
        x = Any[fill(a, 5), T[0, 1, 2, 3, 4]]
        expected = derivative.(x[1], Int.(x[2]), k - 1)
        @test run(p, x)[1] == expected
        @test JaxprAD.run(JaxprAD.compile(p), p, x)[1] ≈ expected
    end
    @test run(derivatives_of_power(type)[2], Any[fill(1.0, 5), fill(typemax(T), 5)])[1] ==
          fill(Float64(typemax(T)), 5)
    @test run(derivatives_of_power(type)[2], Any[fill(1.001, 5), fill(typemin(T), 5)])[1] ≈
          fill(derivative(1.001, Float64(typemin(T)), 1), 5)
end

# What may overwrite an operand comes after what reads it.

rewritten(text) = JaxprAD.overwrite_late(program(text))
update(k, of, at) = "%$k: f64[9] = dynamic_update_slice %$of %1 $at:i64"
const START = "(%0: f64[9], %1: f64[1]) {"

@testset "after other readers of the operand" begin
    p = rewritten("$START $(update(2, 0, 3)) %3: f64[9] = sin %0 return %2 %3 }")
    @test names_in(p) == [:sin, :dynamic_update_slice]
end

@testset "before the first reader of the result, with all that it is made of" begin
    p = rewritten("$START $(update(2, 0, 3)) $(update(3, 2, 4)) $(update(4, 0, 5))
      %5: f64[9] = sin %3 %6: f64[9] = cos %0 return %4 %5 %6 }")
    @test names_in(p) ==
          [:dynamic_update_slice, :dynamic_update_slice, :sin, :cos, :dynamic_update_slice]
    @test JaxprAD.typecheck(p) === p
end

@testset "in the bodies of loops" begin
    p = rewritten("$START %2: f64[9] = scan %1 %0 {length=3, reverse=false, consts=1, carry=1,
      unroll=1, body=(%0: f64[1], %1: f64[9]) { %2: f64[9] = dynamic_update_slice %1 %0 2:i64
      %3: f64[] = reduce_sum %1 {axes=[0]} %4: f64[9] = mul %3 %2
      %5: f64[9] = dynamic_update_slice %4 %0 1:i64 %6: f64[9] = sin %4
      %7: f64[9] = dynamic_update_slice %6 %0 3:i64 return %7 }} return %2 }")
    @test names_in(p.equations[1][:body]) ==
          [:reduce_sum, :dynamic_update_slice, :mul, :sin, :dynamic_update_slice,
        :dynamic_update_slice]
end

# Sums with arrays of few elements that are not zero become additions in place.

r = seeded("add in place")
rewritten(text) = JaxprAD.add_in_place(program(text))
const ZEROS = "broadcast_in_dim 0.0:f64 {shape=[80], dims=[]}"
const ONE_WINDOW = "update_window_dims=[], inserted_window_dims=[0], " *
                   "scatter_dims_to_operand_dims=[0], operand_batching_dims=[], " *
                   "scatter_indices_batching_dims=[], mode=fill, sorted=true"

@testset "x + what is zero but in a window, $made" for (made, window) in (
    (:add_window, "pad %1 0.0:f64 {low=[7], high=[70], interior=[0]}"),
    (:add_window, "dynamic_update_slice %3 %1 %2"))
    for sum in ("add %0 %4", "add %4 %0")
        text = "(%0: f64[80], %1: f64[3], %2: i64[]) { %3: f64[80] = $ZEROS
          %4: f64[80] = $window %5: f64[80] = $sum return %5 }"
        @test made in names_in(rewritten(text)) && !(:add in names_in(rewritten(text)))
        for start in (-5, 0, 20, 79, 1000)      # starts are clamped
            @test native_agrees(text, randn(r, 80), randn(r, 3), fill(start))
        end
    end
end

@testset "x + scattered elements, $op" for op in (:scatter, :scatter_add)
    text = "(%0: f64[80], %1: f64[], %2: i32[1]) { %3: f64[80] = $ZEROS
      %4: f64[80] = $op %3 %2 %1 {$ONE_WINDOW, unique=false}
      %5: f64[80] = add %0 %4 return %5 }"
    @test names_in(rewritten(text)) == [:scatter_add]
    for at in (-1, 0, 79, 80)      # outside of the array nothing is added
        @test native_agrees(text, randn(r, 80), fill(0.5), Int32[at])
    end
end

@testset "windows one after the other, whichever comes first" begin
    windows = "%3: f64[80] = $ZEROS %4: f64[80] = dynamic_update_slice %3 %1 %2
      %5: f64[80] = dynamic_update_slice %3 %1 0:i64"
    for sums in ("%6: f64[80] = add %0 %4 %7: f64[80] = add %6 %5",
        "%6: f64[80] = add %4 %5 %7: f64[80] = add %6 %0",
        "%6: f64[80] = add %4 %5 %7: f64[80] = add %0 %6")
        text = "(%0: f64[80], %1: f64[3], %2: i64[]) { $windows $sums return %7 }"
        @test names_in(rewritten(text)) == [:add_window, :add_window]
        @test native_agrees(text, randn(r, 80), randn(r, 3), fill(1))
    end
end

@testset "a sum of sums of windows" begin
    text = "(%0: f64[80], %1: f64[3], %2: i64[]) { %3: f64[80] = $ZEROS
      %4: f64[80] = dynamic_update_slice %3 %1 %2 %5: f64[80] = dynamic_update_slice %3 %1 0:i64
      %6: f64[80] = dynamic_update_slice %3 %1 9:i64 %7: f64[80] = add %4 %5
      %8: f64[80] = add %6 %7 %9: f64[80] = add %0 %8 %10: f64[80] = sin %0
      %11: f64[80] = add %10 %9 return %11 }"
    @test count(==(:add_window), names_in(rewritten(text))) == 3
    @test native_agrees(text, randn(r, 80), randn(r, 3), fill(1))
end

@testset "x + (y + windows), where y is computed element by element: $sum" for sum in
                                                                       ("add %0 %9", "add %9 %0")
    text = "(%0: f64[80], %1: f64[3], %2: i64[]) { %3: f64[80] = $ZEROS
      %4: f64[80] = dynamic_update_slice %3 %1 %2 %5: f64[80] = dynamic_update_slice %3 %1 0:i64
      %7: f64[80] = YEQ %8: f64[80] = add %7 %4 %9: f64[80] = add %5 %8
      %10: f64[80] = $sum return %10 }"
    @test names_in(rewritten(replace(text, "YEQ" => "cos %0"))) ==
          [:cos, :add, :add_window, :add_window]
    # An array in memory is added to there.
    @test names_in(rewritten(replace(text, "YEQ" => "cumsum %0 {axis=0, reverse=false}"))) ==
          [:cumsum, :add_window, :add_window, :add]
    # A difference that may cancel is taken as it stands.
    @test names_in(rewritten(replace(text, "YEQ" => "neg %0"))) ==
          [:neg, :add_window, :add_window, :add]
    for y in ("cos %0", "cumsum %0 {axis=0, reverse=false}", "neg %0")
        @test native_agrees(replace(text, "YEQ" => y), randn(r, 80), randn(r, 3), fill(1))
    end
end

@testset "sums that stay: $why" for (why, equations) in (
    ("the window is needed elsewhere", "%4: f64[80] = dynamic_update_slice %3 %1 %2
      %5: f64[80] = add %0 %4 %6: f64[80] = mul %5 %4"),
    ("the window is not small", "%4: f64[80] = pad %0 0.0:f64 {low=[0], high=[0], interior=[0]}
      %6: f64[80] = add %0 %4"),
    ("around the window are ones", "%4: f64[80] = pad %1 1.0:f64 {low=[7], high=[70],
      interior=[0]} %6: f64[80] = add %0 %4"),
    ("elements may be written twice, not added", "%4: i32[3,1] = broadcast_in_dim 5:i32 {
      shape=[3, 1], dims=[]} %5: f64[80] = scatter %3 %4 %1 {$ONE_WINDOW, unique=false}
      %6: f64[80] = add %0 %5"))
    text = "(%0: f64[80], %1: f64[3], %2: i64[]) { %3: f64[80] = $ZEROS $equations return %6 }"
    @test :add in names_in(rewritten(text))
    @test native_agrees(text, randn(r, 80), fill(0.5, 3), fill(4))
end

@testset "in the bodies of loops" begin
    text = "(%0: f64[80], %1: f64[9]) { %2: f64[80] = scan %0 %1 {length=9, reverse=false,
      consts=0, carry=1, unroll=1, body=(%0: f64[80], %1: f64[]) {
        %2: f64[80] = $ZEROS %3: f64[1] = reshape %1 {shape=[1]}
        %4: i64[] = convert_element_type %1 {dtype=i64}
        %5: f64[80] = dynamic_update_slice %2 %3 %4 %6: f64[80] = add %5 %0 return %6 }}
      return %2 }"
    body = only(e[:body] for e in rewritten(text).equations if haskey(e.attrs, :body))
    @test :add_window in names_in(body) && !(:broadcast_in_dim in names_in(body))
    @test native_agrees(text, randn(r, 80), 90rand(r, 9)) && heap_free(text)
end

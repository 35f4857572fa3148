using LinearAlgebra: LinearAlgebra, Diagonal, Hermitian

r = seeded("eigh")
# (X + Xᴴ) / 2 is Hermitian along any direction; |V|² does not depend on phases.
function eigh(T, n)
    matrix, vector, bare = "$T[$n,$n]", "$(T == "c128" ? "f64" : T)[$n]", T == "c128" ?
                                                   "conj" : "copy"
    magnitude = T == "c128" ? "%6: f64[$n,$n] = abs %4" : "%6: f64[$n,$n] = copy %4"
    """(%0: $matrix) { %1: $matrix = transpose %0 {perm=[1, 0]} %2: $matrix = $bare %1
      %3: $matrix = add %0 %2
        %4: $matrix, %5: $vector = eigh %3 {lower=true, sort_eigenvalues=true} $magnitude
          %7: f64[$n,$n] = square %6 return %5 %7 }"""
end
function decomposed(x)
    a = permutedims(x)
    w, v = LinearAlgebra.eigen(Hermitian(a + a'))
    w, permutedims(abs2.(v))
end
check(eigh("f64", 3), randn(r, 3, 3); reference = decomposed, name = "real")
check(eigh("c128", 3), randn(r, ComplexF64, 3, 3); reference = decomposed, name = "complex")

# Of any operand one triangle is read and the real part of the diagonal, whatever else there is: so
# along any direction.
function bare(T, lower)
    magnitude = T == "c128" ? "abs" : "copy"
    """(%0: $T[4,4]) { %1: $T[4,4], %2: f64[4] = eigh %0 {lower=$lower, sort_eigenvalues=true}
      %3: f64[4,4] = $magnitude %1 %4: f64[4,4] = square %3
        return %2 %4 }"""
end
function of_triangle(x, side)
    w, v = LinearAlgebra.eigen(Hermitian(permutedims(x), side))
    w, permutedims(abs2.(v))
end
for (type, T) in ("f64" => Float64, "c128" => ComplexF64), lower in (true, false)
    check(bare(type, lower), randn(r, T, 4, 4) .+ Diagonal(3.0:3:12);
        reference = x -> of_triangle(x, lower ? :L : :U), tolerance = 2e-9,
        name = "$type, not symmetric, lower $lower")
end

read(lower) = "(%0: f64[2,2]) { %1: f64[2,2],
  %2: f64[2] = eigh %0 {lower=$lower, sort_eigenvalues=true} return %2 }"
check_value(read(true), x -> ([1.0, 3.0],), rowmajor([2.0 99; 1 2]))
check_value(read(false), x -> ([2 - 99.0, 2 + 99],), rowmajor([2.0 99; 1 2]))
check_value(read(true), x -> ([NaN, NaN],), fill(NaN, 2, 2))
@test refuses("(%0: f64[2,3]) { %1: f64[2,3],
  %2: f64[2] = eigh %0 {lower=true, sort_eigenvalues=true} return %2 }")

# Small nests of numbers of two types: a literal of the one is no literal of the other, though they
# are equal, and each conversion is made.

const REAL = Dict(T => "$(Float64(1)):" for T in ("f16", "bf16", "f32", "f64"))
one_of(t) = t == "bool" ? "true:bool" : startswith(t, "c") ? "(1.0,0.0):$t" :
            get(REAL, t, "1:") * t

"""
A loop over carried arrays of both types, that of each iteration computed with a literal of its type
and, for the second, with the first converted."""
function with_types(a, b, first, second)
    change(t, x) = t == "bool" ? "xor $(one_of(t)) $x" : "sub $(one_of(t)) $x"
    join_(t, x, y) = t == "bool" ? "and $x $y" : "mul $x $y"
    """%$first: $a[3], %$second: $b[3] = scan %0 %1 {length=3, reverse=false, consts=0, carry=2,
      unroll=1, body=(%0: $a[3], %1: $b[3]) {
        %2: $a[3] = $(change(a, "%0")) %3: $b[3] = $(change(b, "%1"))
        %4: $b[3] = convert_element_type %2 {dtype=$b}
        %5: $b[3] = $(join_(b, "%3", "%4")) return %2 %5 }}"""
end

const NAMES = string.(first.(JaxprAD.DTYPES))
"A value that every type has, and its negative or complement."
small(T) = T <: Integer ? T[1, 0, 1] : T[1, 0.5, 0.25]

@testset "$a and another type" for a in NAMES
    types = [(a, b) for b in NAMES]
    loops = [replace(with_types(a, b, 100 + 2k, 101 + 2k), r"%1 \{length" => "%$k {length")
             for (k, (_, b)) in enumerate(types)]
    inputs = join(["%0: $a[3]"; ["%$k: $b[3]" for (k, (_, b)) in enumerate(types)]], ", ")
    results = join(["%$(100 + k)" for k in 2:2length(types)+1], " ")
    text = "($inputs) { $(join(loops, '\n')) return $results }"
    x = Any[small(JaxprAD.DTYPE_OF_NAME[Symbol(t)]) for t in [a; last.(types)]]
    p = program(text)
    @test isequal(JaxprAD.run(JaxprAD.compile(p), p, x), JaxprAD.evaluate(p, x))
    @test heap_free(p)
end

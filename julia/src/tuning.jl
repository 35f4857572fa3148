# The constants that say how large is large, for passes and code generation. Limits on costs, in
# additions, are in costs.jl. Each says what it bounds and why it is so large; "chosen, not
# measured" where any number of that order serves.

# ---- optimize (passes/pipeline.jl, factor_sums.jl)

"""
Rounds of factoring sums and simplifying. Each that helps removes an equation; most
Programs need two."""
const ROUNDS = 8
"""
Terms of the longest sums that are searched for pairs which other sums have too: pairs grow with the
square of it."""
const LONGEST_SHARED = 16
"""
Additive ancestors of a term that are looked at before its sum is left as it stands: bounds the time
on long chains of additions."""
const MANY_ANCESTORS = 64

# ---- loops from straight-line code (passes/reroll_loops.jl)

"Equations from which on a stretch becomes a loop: shorter ones compile soon enough as they are."
const WORTH_ROLLING = 500
"The fewest trips of such a loop, whose last trip stays in front of what comes after."
const FEWEST_TRIPS = 8
"""
Equations that are tried as the beginning of the second trip, so that the search stays linear. A
loop in a loop of n trips needs n or more."""
const MOST_CANDIDATES = 256

# ---- residuals (passes/rematerialize.jl, pack_loop_residuals.jl)

"The part of a residual up to which what it is computed from is kept in its place. Chosen."
const SMALL_PART = 1 // 8
"""
The part of a residual's bytes up to which what gives it, of any shape, is kept in its place where
nothing better is: a mask instead of its numbers. Chosen."""
const SMALLER_DTYPE = 1 // 4
"Elements from which on a residual is large. Smaller ones (8 KiB of f64) stay in the caches."
const SMALL_RESIDUAL = 1024
"""
How far back the computations of two residuals are compared, to put alike ones side by side. Chosen,
not measured."""
const LIKENESS = 3

# ---- arrays of native code (passes/add_in_place.jl, assign_layouts.jl,
# plan/materialization.jl)

"""
The part of an array up to which a window is added in place, and kept when the array is updated
before it is read: else the whole array would be passed."""
const SMALL_WINDOW = 1 // 8

"""
Items of a batch from which on the numbers of a record are kept apart: two vectors of float64, with
AVX-512."""
const ITEMS_OF_VECTORS = 16

"""
The longest rows that are short, less than a vector of float64 with AVX-512, and how many times as
many elements as are transposed nests have to pass that stop at the ends of rows. Chosen."""
const LONGEST_SHORT_ROW, WORTH_TRANSPOSING = 7, 2

"The share from which on an update at a fixed place is written with the rest of the array. Chosen."
const LARGE_WINDOW = 1 // 2
"""
Bytes from which on an array is put in the order that products want: a smaller one is in the nearest
cache (32 KiB) in any order."""
const WORTH_LAYOUT = 1 << 15
"""
Bytes from which on a carried array is put in the order that its windows want. Chosen, not
measured."""
const WORTH_REORDERING = 1 << 11

# ---- the plan (codegen/plan/)

"""
Bytes from which on an array leaves the nearest cache between two loop nests: what follows from
another one at little cost is not kept then."""
const LEAVES_CACHE = 1 << 15

"Equations computed in one expression: bounds the length of a nest's body. Chosen, not measured."
const LONGEST_CHAIN = 200
"""
Rounds of fusion after which it is no longer looked for what several nests need; each puts what it
finds in memory. Chosen, not measured."""
const MOST_PLANS = 4
"""
Arrays and reductions that one nest computes: each needs a pointer in one of the 16 general
registers of x86-64."""
const MOST_ROOTS = 12

# ---- loop nests (codegen/nest/)

"""
Places along the last axis at which a row is cut so that no test of an edge is inside. With more,
tests stay in: the code grows with each."""
const MOST_PARTS = 9
"""
Rows and columns of the tiles in which two orders of memory meet: 32 lines of 64 bytes, and 32 rows
of them, stay in the nearest cache."""
const TILE = 32
"""
Rows longer than `LONG_ROW` are cut into `ROW_BLOCK`s: sums lose less to rounding, and what is
checked before it is computed is still in the nearest cache (2048 numbers are 8 or 16 KiB)."""
const ROW_BLOCK = 2048
const LONG_ROW = 2ROW_BLOCK
"""
The same for sums of functions, which take so much longer than to add up the lanes at the end of a
block that it may be short: of 1000 exponentials in single precision, sums by 8 lanes lose three
times as much as XLA's."""
const ROW_BLOCK_OF_FUNCTIONS = 256
"""
Terms that a sum over rows adds one after the other: of 128 rows, errors are those of XLA with 32,
and more than twice as large with 128 (measured)."""
const SUM_BLOCK = 32
"""
Terms of a running total that are combined one after the other, for the same reason; of one line, so
many blocks are vectors."""
const RUNNING_BLOCK = 16
"""
Bytes of a row that LLVM's loops pass at a time at most: four vectors of AVX-512. What is left of a
row they pass one by one."""
const AT_ONCE = 256
"""
Elements from which on a row's sum of what is left of vectors is one of its own (measured: of 300
numbers in single precision it takes half of the time and has a fifth of the error)."""
const SHORTEST_IN_TWO_SUMS = 128
"Steps that a row's stretches take together at most: bounds the code written for one row."
const MOST_STEPS = 200
"""
Elements from which on a row gains by stretches of powers of two (measured): a stretch takes
the time of a whole vector, and at its end one more for each extremum. Of rows of five to seven
functions LLVM makes vectors across the rows unless there are sums, or arguments are checked."""
const SHORT_ROW, SHORT_ROW_OF_EXTREMA, SHORT_ROW_OF_LONG_FUNCTIONS = 4, 8, 8
"The cost from which on a function of numbers is long for that."
const LONG_FUNCTION = 8
"Quotients by one number from which on they are products with its reciprocal. Chosen."
const FEWEST_BY_RECIPROCAL = 3
"""
Elements from which on a row divides by what is the same for all of it by products with the
reciprocal. Chosen."""
const SHORTEST_BY_RECIPROCAL = 16
"""
Steps of an argument up to which it is computed twice, to see whether the fast form of a function
serves. Chosen, not measured."""
const LONGEST_CHECK = 12
"Functions with a fast form up to which a row has their other form as vectors, too. Chosen."
const MOST_FAR_FUNCTIONS = 2

# ---- small nests as vectors (codegen/nest/vectors/)

"The most axes and points of such a nest, and the most steps of all its points together. Chosen."
const MOST_PACKED_AXES, MOST_PACKED_POINTS, MOST_PACKED_STEPS = 4, 128, 2000
"Points up to which it is tried without vectors, too."
const FEW_POINTS = 16
"""
Bytes of such a vector: those of AVX-512, twice as long, are no faster where they are put
together from lanes of others (leapfrog, 3x3 carry: measured)."""
const VECTOR_BYTES = 32
"Bytes of the largest vectors of LLVM's loops, those of AVX-512."
const LOOP_BYTES = 64
"Elements that are read though nobody asks for them, between two that are asked for."
const MOST_BETWEEN = 4
"""
What a vector of a function is taken to cost, in additions of vectors: some twenty instructions, and
the way by memory. Chosen, not measured."""
const FUNCTION_COST = 30.0

# ---- blocks of items (codegen/kernels/item_blocks.jl)

"Items times trips times equations from which on a loop's items are cut into blocks."
const WORTH_BLOCKS = 2_000_000
"""
Bytes of what a block's trip passes: half of the nearest cache (of 2 to 96 KiB for Lorenz's equation
with 10 000 items: measured)."""
const BLOCK_BYTES = 1 << 14

# ---- threads (codegen/nest/parallel.jl, kernels/)

"""
Points times steps from which on a nest is cut into chunks: fewer, of some 10 µs, are done sooner
than another thread takes its share (measured)."""
const WORTH_THREADS = 400_000
"Rows or columns that a thread takes at a time of a matrix product by tiles, or more. Chosen."
const LEAST_PART = 32
"Chunks a thread, since some threads come late."
const CHUNKS_A_THREAD = 4
"Bytes that the chunks' own accumulators may take together: with more, the nest is not cut."
const LARGEST_PARTIALS = 1 << 20

# ---- products and convolutions (codegen/kernels/)

"Multiplications up to which loops are no slower than a call of a routine."
const TINY_PRODUCT = 200
"""
Multiplications from which on a product that tiles do not suit goes to BLAS, and up to which
products are loops for Enzyme to differentiate."""
const SMALL_PRODUCT = 8_000
"Multiplications from which on several threads pay."
const LARGE_PRODUCT = 2_000_000
"The same of a matrix with a vector, which waits for memory."
const LARGE_VECTOR_PRODUCT = 200_000
"""
The right operand's bytes up to which it stays in a cache (256 KiB) while the rows pass, so that
nothing is gained from BLAS's packing it. Of a larger one tiles take so much at a time."""
const TILED_BYTES = 1 << 18
"""
The right operand's bytes from which on tiles have its rows fetched ahead. With 24 MB, 8 rows of f64
took 1.05 ms and take 0.64, with 240 MB of f32 20 ms and 9.4; with 8 MB, which a third cache has,
they would take a tenth more (AVX-512, one core)."""
const FETCHED_BYTES = 1 << 24

"""
Terms of a product that tiles add up one after the other, in registers, before the sum so far: in
single precision 3000 of them lose twice as much. A tile is read and written once more in each
run. Chosen."""
const LONGEST_RUN = 256
"""
Bytes of a column up to which tiles, and tiles of sums, are faster than BLAS, whose packing so few
rows do not pay for, where the right operand is large: at 16 rows 1.0 to 2.1 times as fast, at 32 of
f32 1.1 to 1.4 and 0.95 to 1.1 times, at 64 of f64 0.75 to 0.9 (500 to 1024 columns, 784 terms, one
core; OpenBLAS 0.3.9 with its kernels for AVX-512, which it has not where OPENBLAS_CORETYPE says
so)."""
const THIN_PRODUCT, THIN_SUMS = 192, 128
"""
Bytes of a sum's terms from which on products go by tiles of sums, whose lanes are added up at the
end: of few rows, and of many where the right operand is small, for which BLAS packs."""
const LEAST_TERMS_OF_FEW, LEAST_TERMS = 64, 1024
"""
Cycles, roughly, of a tile of sums for a register's terms and for adding up its lanes, of a tile of
columns for a row and a register's columns, and for each number that is rearranged: right about
which is faster for 16 sizes from 8 × 64 × 100 to 500 × 128 × 10, in f32 and f64 (AVX-512)."""
const TERMS_CYCLES, SUMS_CYCLES, COLUMNS_CYCLES, REARRANGING_CYCLES = 7, 75, 0.6, 1.2
"Rows from which on it pays to rearrange the right operand for tiles."
const REARRANGED_ROWS = 8
"""
Rows of a triangle up to which systems go by tiles, with so many right-hand sides at least unless
there are no more rows than the third: from 1.05 to 4 times as fast as BLAS, else from 0.6 to 1.05
(OpenBLAS 0.3.9, AVX-512, one core). So small matrices are factorized without LAPACK, too."""
const MOST_SOLVED_BY_TILES, LEAST_SIDES, FEW_UNKNOWNS = 400, 16, 24
"""
Elements of the copy that a convolution by tiles makes of a part of the image: about so many, and
never more than the second."""
const IMAGE_COPY, LARGEST_IMAGE_COPY = 1 << 17, 1 << 19
"""
Terms of each element of a convolution from which on tiles pay though the result has to be
rearranged after them. Chosen."""
const LEAST_MET = 4
"""
Elements of the matrix that a convolution by BLAS makes of a part of the image: about so many, as
with tiles."""
const IMAGE_MATRIX = 1 << 17

"""
Bytes of the lines that a Fourier transform takes at once, twice: what the nearest caches hold, and
up to the second where a vector's lines need more. Chosen."""
const FOURIER_BYTES, LARGEST_FOURIER_BYTES = 1 << 16, 1 << 20

# ---- sorting (codegen/kernels/routines/sorting.jl)

"Elements that are sorted by insertion before runs are merged. Chosen, not measured."
const SHORT_RUN = 16

# ---- tapes of while loops (codegen/kernels/while_passes.jl)

"Records for which there is memory from the first trip on; a power of two. Then it doubles."
const SHORTEST_TAPE = 16

# ---- functions of a kernel (codegen/lower/: outline_functions.jl, outline_bodies.jl)

"""
Statements from which on straight-line code, or a loop's body, is cut into functions: the compiler's
time grows faster than a function's length."""
const LONGEST_FUNCTION = 300
"""
Statements that a stretch of a loop's body runs for each variable that it takes or gives if it is a
function of its own: with fewer, loops of small arrays were 10 to 60 % slower."""
const WORTH_PASSING = 1000
"Statements from which on what stages of such code do alike is one function. Chosen."
const WORTH_SHARING = 20

# ---- Enzyme (enzyme/)

"""
Elements from which on arithmetic is a kernel's and not Enzyme's: a fused nest is one pass over
memory, Enzyme's are several."""
const LARGE_ARRAY = 1024
"Tangents or cotangents that Enzyme carries at once: its code grows in proportion."
const MOST_LANES = 4

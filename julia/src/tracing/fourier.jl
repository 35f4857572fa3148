# Discrete Fourier transforms of traced arrays along any dimensions. The primitive transforms the
# last axes of a Program's array, which are Julia's first dimensions, and three at most.

"""
    fourier(kind, x, dims, n = size(x, dims[1]))

The discrete Fourier transform of a traced array: `:fft`, its inverse `:ifft`, and for real arrays
`:rfft`, which keeps the first `n ÷ 2 + 1` elements along `dims[1]`, with its inverse `:irfft`,
which takes these and the length n of the result along `dims[1]`. Inverses are normalised. Throws
ArgumentError where the dimensions are none of the array's or not distinct, and DimensionMismatch
where n does not fit."""
function fourier(kind::Symbol, x::TracedArray, dims, n = nothing)
    along = Int[dims...]
    !isempty(along) && allunique(along) && issubset(along, 1:ndims(x)) || throw(
        ArgumentError("no distinct dimensions of an array of size $(size(x)): $(Tuple(dims))"))
    n === nothing && (n = size(x, along[1]))
    kind !== :irfft || size(x, along[1]) == n ÷ 2 + 1 || throw(DimensionMismatch(
        "the transform of a real array of length $n has $(n ÷ 2 + 1) elements along dimension " *
        "$(along[1]); this has the size $(size(x))"))
    near, far = along[1:min(end, 3)], along[4:end]
    isempty(far) && return fourier_equation(kind, x, near, n)
    kind === :irfft && return fourier_equation(kind, fourier(:ifft, x, far), near, n)
    fourier(kind === :rfft ? :fft : kind, fourier_equation(kind, x, near, n), far)
end

function fourier_equation(kind, x, dims, n)
    order = vcat(dims, setdiff(1:ndims(x), dims))
    y = permutedims(as_eltype(fourier_type(kind, eltype(x)), x), order)
    lengths = Int[reverse(size(y)[2:length(dims)])..., n]
    z = emit_here(:fft, atom_here(y); fft_type = kind, fft_lengths = lengths)
    permutedims(traced_array(z), invperm(order))
end
fourier_type(kind, S) = kind === :rfft ? float(S) : complex(float(S))

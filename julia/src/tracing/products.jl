# Linear algebra without factorizations: products, norms, diagonals, triangles.

function product(x::AbstractVecOrMat, y::AbstractVecOrMat)
    Base.require_one_based_indexing(x, y)
    product(traced(x), traced(y))
end
product(x::TracedVector, y::AbstractMatrix) = product(reshape(x, length(x), 1), y)
function product(x::TracedMatrix, y::TracedArray)
    size(x, 2) == size(y, 1) || throw(
        DimensionMismatch("a matrix of size $(size(x)) times an array of size $(size(y))"))
    S = promote_type(eltype(x), eltype(y))
    a, b = atom_here(as_eltype(S, x)), atom_here(as_eltype(S, y))
    # (m, k) · (k, n): the Program's arrays are (k, m) and (n, k), and (n, m) the result
    left, right, of_left, of_right = y isa TracedVector ? (a, b, 0, 0) : (b, a, 1, 0)
    traced_array(
        emit_here(:dot_general, left, right; lhs_contract = [of_left],
            rhs_contract = [of_right], lhs_batch = Int[], rhs_batch = Int[],
            dtype = dtype_name(plain_type(S)), precision = :highest)
    )
end

# LinearAlgebra's methods bind both element types, and so must ours to be more specific.
for X in (:(AbstractMatrix{T}), :(Adjoint{<:Any,<:AbstractMatrix{T}}),
    :(Transpose{<:Any,<:AbstractMatrix{T}}), :(StridedMatrix{T}))
    @eval Base.:*(x::$X, y::AbstractVector{S}) where {T,S<:TracedNumber} = product(x, y)
end
for W in WRAPPED
    W in (Adjoint, Transpose) ||
        @eval Base.:*(x::$W, y::AbstractVector{S}) where {S<:TracedNumber} = product(x, y)
    @eval Base.:*(x::$W, y::MatrixOfTraced) = product(x, y)
end
Base.:*(x::MatrixOfTraced, y::AbstractVector{S}) where {S<:TracedNumber} = product(x, y)
Base.:*(x::MatrixOfTraced, y::MatrixOfTraced) = product(x, y)
Base.:*(x::AbstractMatrix, y::MatrixOfTraced) = product(x, y)
Base.:*(x::Adjoint{<:Any,<:AbstractMatrix}, y::MatrixOfTraced) = product(x, y)
Base.:*(x::Transpose{<:Any,<:AbstractMatrix}, y::MatrixOfTraced) = product(x, y)
Base.:*(x::StridedMatrix{<:LinearAlgebra.BlasFloat}, y::MatrixOfTraced) = product(x, y)
Base.:*(x::MatrixOfTraced, y::AbstractMatrix) = product(x, y)
Base.:*(x::MatrixOfTraced, y::AbstractVector) = product(x, y)
Base.:*(x::MatrixOfTraced, y::StridedMatrix{<:LinearAlgebra.BlasFloat}) = product(x, y)
Base.:*(x::MatrixOfTraced, y::StridedVector{<:LinearAlgebra.BlasFloat}) = product(x, y)
for X in (:(StridedMatrix{T}), :(Adjoint{<:Any,<:StridedMatrix{T}}),
    :(Transpose{<:Any,<:StridedMatrix{T}}))
    @eval Base.:*(x::$X,
        y::StridedVector{S}) where {T<:LinearAlgebra.BlasFloat,S<:TracedReal} = product(x, y)
end
for W in WRAPPED
    @eval Base.:*(x::MatrixOfTraced, y::$W) = product(x, y)
    W in (Adjoint, Transpose) && continue
    @eval Base.:*(x::$W{<:TracedNumber}, y::AbstractVector{S}) where {S<:TracedNumber} =
        product(x, y)
    for V in (AbstractVector, AbstractMatrix, MatrixOfTraced)
        @eval Base.:*(x::$W{<:TracedNumber}, y::$V) = product(x, y)
    end
end
for (W, turned) in ((Adjoint, adjoint), (Transpose, LinearAlgebra.transpose))
    row, traced_row = W{<:Number,<:AbstractVector}, W{<:TracedNumber,<:VectorOfTraced}
    @eval begin
        Base.:*(x::$row, y::VectorOfTraced) = row_times(x, y)
        Base.:*(x::$row, y::MatrixOfTraced) = $turned($turned(y) * parent(x))
        Base.:*(x::VectorOfTraced, y::$row) = broadcast(*, x, traced(y))
        Base.:*(x::MatrixOfTraced, y::$row) = product(x, y)
        Base.:*(x::AbstractVector{<:Number}, y::$traced_row) = broadcast(*, x, traced(y))
        Base.:*(x::VectorOfTraced, y::$traced_row) = broadcast(*, x, traced(y))
        Base.:*(x::$traced_row, y::AbstractVector{<:Number}) = row_times(x, y)
        Base.:*(x::$traced_row, y::VectorOfTraced) = row_times(x, y)
    end
end
row_times(x::Adjoint, y) = dot(parent(x), y)
row_times(x::Transpose, y) = dot(conj(parent(x)), y)

for (C, V) in ((TracedMatrix, AbstractVecOrMat), (TracedVector, AbstractVector)),
    A in (AbstractVecOrMat, WRAPPED...)

    @eval LinearAlgebra.mul!(c::$C, a::$A, b::$V) = assign!(c, product(a, b))
    @eval LinearAlgebra.mul!(c::$C, a::$A, b::$V, α::Number, β::Number) =
        assign!(c, α .* product(a, b) .+ β .* c)
end
for B in (Adjoint, Transpose, Diagonal)
    @eval LinearAlgebra.mul!(c::TracedMatrix, a::AbstractVecOrMat, b::$B) =
        assign!(c, product(a, b))
    @eval LinearAlgebra.mul!(c::TracedMatrix, a::AbstractVecOrMat, b::$B, α::Number, β::Number) =
        assign!(c, α .* product(a, b) .+ β .* c)
end
LinearAlgebra.rmul!(x::TracedArray, s::Number) = assign!(x, x .* s)
LinearAlgebra.lmul!(s::Number, x::TracedArray) = assign!(x, s .* x)

# ---- numbers of arrays

for (A, B) in ((ArrayOfTraced, ArrayOfTraced), (ArrayOfTraced, AbstractArray),
    (AbstractArray, ArrayOfTraced))
    @eval function LinearAlgebra.dot(x::$A, y::$B)
        length(x) == length(y) ||
            throw(DimensionMismatch("dot of arrays of sizes $(size(x)) and $(size(y))"))
        n = (length(x),)
        only_element(product(reshape(conj(traced(x)), 1, length(x)), reshape(traced(y), n)))
    end
end
for X in (VectorOfTraced, AbstractVector), Y in (VectorOfTraced, AbstractVector)
    X === Y === AbstractVector || for A in (AbstractMatrix, WRAPPED...)
        @eval LinearAlgebra.dot(x::$X, a::$A, y::$Y) = dot(x, a * y)
    end
    for A in (MatrixOfTraced, (W{<:TracedNumber} for W in WRAPPED)...)
        @eval LinearAlgebra.dot(x::$X, a::$A, y::$Y) = dot(x, a * y)
    end
end
LinearAlgebra.norm(x::ArrayOfTraced, p::Real = 2) =
    p == 2 ? sqrt(sum(abs2, x)) :
    p == 1 ? sum(abs, x) :
    p == Inf ? maximum(abs, x) :
    p == -Inf ? minimum(abs, x) : sum(abs.(x) .^ p)^(1 / p)
LinearAlgebra.norm_sqr(x::ArrayOfTraced) = sum(abs2, x)
for (A, B) in ((ArrayOfTraced, ArrayOfTraced), (ArrayOfTraced, AbstractArray),
    (AbstractArray, ArrayOfTraced))
    @eval function Base.isapprox(x::$A, y::$B; atol::Real = 0,
        rtol::Real = relative_tolerance(eltype(x), eltype(y), atol))
        apart = norm(x - y)
        select(isfinite(apart), apart <= max(atol, rtol * max(norm(x), norm(y))),
            all(isapprox.(x, y; atol = atol, rtol = rtol)))
    end
end
LinearAlgebra.normalize(x::ArrayOfTraced{1}) = x ./ norm(x)
LinearAlgebra.normalize!(x::ArrayOfTraced{1}) = assign!(x, normalize(x))
LinearAlgebra.opnorm(a::MatrixOfTraced, p::Real = 2) =
    p == 2 ? maximum(svdvals(a)) :
    p == 1 ? maximum(sum(abs, a; dims = 1)) :
    p == Inf ? maximum(sum(abs, a; dims = 2)) :
    throw(ArgumentError("the norm of a matrix as an operator is known for p = 1, 2 and Inf"))
function LinearAlgebra.cond(a::MatrixOfTraced, p::Real = 2)
    p == 2 || return opnorm(a, p) * opnorm(inv(a), p)
    s = svdvals(a)
    maximum(s) / minimum(s)
end
LinearAlgebra.tr(x::TracedMatrix) = sum(diag(x))

# ---- diagonals and triangles, as conditions on places

"Where `op(column - row, k)` holds in a matrix of that size."
where_band(op, n::Dims{2}, k) = traced([op(j - i, k) for i in 1:n[1], j in 1:n[2]])
LinearAlgebra.triu(x::TracedMatrix, k::Integer = 0) = select.(where_band(>=, size(x), k), x, 0)
LinearAlgebra.tril(x::TracedMatrix, k::Integer = 0) = select.(where_band(<=, size(x), k), x, 0)
function LinearAlgebra.diag(x::TracedMatrix, k::Integer = 0)
    m, n = size(x)
    count_ = min(m, n, k > 0 ? n - k : m + k)
    vec(x)[range(k > 0 ? 1 + k * m : 1 - k; step = m + 1, length = max(count_, 0))]
end
LinearAlgebra.diagm(x::TracedVector) = traced(Diagonal(x))
traced(x::Diagonal{<:TracedNumber}) =
    select.(where_band(==, size(x), 0), traced(x.diag), zero(eltype(x)))
traced(x::UpperTriangular{<:TracedNumber}) = triu(traced(parent(x)))
traced(x::LowerTriangular{<:TracedNumber}) = tril(traced(parent(x)))
traced(x::UnitUpperTriangular{<:TracedNumber}) = triu(traced(parent(x)), 1) .+ one_matrix(x)
traced(x::UnitLowerTriangular{<:TracedNumber}) = tril(traced(parent(x)), -1) .+ one_matrix(x)
one_matrix(x) = Matrix{dtype(x)}(I, size(x)...)
function traced(x::Union{Symmetric{<:TracedNumber},Hermitian{<:TracedNumber}})
    a = traced(parent(x))
    b = x isa Symmetric ? permutedims(a) : adjoint(a)
    select.(where_band(x.uplo == 'U' ? (>=) : (<=), size(a), 0), a, b)
end
Base.:+(x::TracedMatrix, y::UniformScaling) = x .+ Matrix{typeof(y.λ)}(y, size(x)...)
Base.:+(x::UniformScaling, y::TracedMatrix) = y + x
Base.:-(x::TracedMatrix, y::UniformScaling) = x .- Matrix{typeof(y.λ)}(y, size(x)...)
Base.:-(x::UniformScaling, y::TracedMatrix) = Matrix{typeof(x.λ)}(x, size(y)...) .- y
Base.kron(x::TracedMatrix, y::AbstractMatrix) = kronecker(x, traced(y))
Base.kron(x::AbstractMatrix, y::TracedMatrix) = kronecker(traced(x), y)
Base.kron(x::TracedMatrix, y::TracedMatrix) = kronecker(x, y)
function kronecker(x, y)
    (a, b), (c, d) = size(x), size(y)
    reshape(reshape(x, 1, a, 1, b) .* reshape(y, c, 1, d, 1), a * c, b * d)
end

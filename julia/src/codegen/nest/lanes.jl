# Along the last axis an accumulator is one of the processor's lanes. LLVM orders integers in lanes
# but not floats with NaN: floats therefore go by an integer of the same order, with NaN at the end
# that wins.
const Extremum = Union{ReduceMax,ReduceMin}
const Ordered = Union{Float32,Float64}
lane(op::Extremum, ::Type{T}) where {T<:Ordered} = signed(unsigned_of(T))
lane_start(r::Reduce) = to_lane(r.op, r.type, neutral(r.op, r.type))
combine_lanes(op::ReduceMax, ::Type{T}, a, b) where {T<:Ordered} = ifelse(a > b, a, b)
combine_lanes(op::ReduceMin, ::Type{T}, a, b) where {T<:Ordered} = ifelse(a < b, a, b)
in_order(bits::T) where {T<:Signed} = bits ⊻ ((bits >> (8sizeof(T) - 1)) & typemax(T))
to_lane(op::ReduceMax, ::Type{T}, x) where {T<:Ordered} =
    (I = lane(op, T); ifelse(x != x, typemax(I), in_order(reinterpret(I, x))))
to_lane(op::ReduceMin, ::Type{T}, x) where {T<:Ordered} =
    (I = lane(op, T); ifelse(x != x, typemin(I), in_order(reinterpret(I, x))))
from_lane(op::Extremum, ::Type{T}, x) where {T<:Ordered} = reinterpret(T, in_order(x))

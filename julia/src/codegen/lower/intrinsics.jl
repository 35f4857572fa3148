# Calls that Julia's compiler would turn into single instructions, written as such: finding that out
# is most of its work on long code.

const FLOAT_OPERATIONS = IdDict{Any,Any}((+) => Core.Intrinsics.add_float,
    (*) => Core.Intrinsics.mul_float, quotient => Core.Intrinsics.div_float)
const INT_OPERATIONS = IdDict{Any,Any}((+) => Core.Intrinsics.add_int,
    (-) => Core.Intrinsics.sub_int, (*) => Core.Intrinsics.mul_int)

"""
    lean(ex, types) -> (expression, type)

The expression with intrinsic functions in place of calls whose operands' types are known; its type,
or `nothing` where it is not known."""
lean(@nospecialize(x), types) = x, x isa Union{Float32,Float64,Int} ? typeof(x) : nothing
lean(v::Symbol, types) = v, get(types, v, nothing)
function lean(ex::Expr, types)
    ex.head === :call || return Expr(ex.head, (first(lean(a, types)) for a in ex.args)...), nothing
    f, operands = ex.args[1], Any[lean(a, types) for a in ex.args[2:end]]
    lean_call(f, Any[first(x) for x in operands], Any[last(x) for x in operands])
end

plain_call(@nospecialize(f), x) = Expr(:call, f, x...), nothing
function lean_call(@nospecialize(f), x, T)
    length(x) == 2 && T[1] === T[2] && T[1] isa DataType || return plain_call(f, x)
    lean_binary(f, x, T[1])
end
lean_binary(@nospecialize(f), x, ::Type) = plain_call(f, x)
function lean_binary(@nospecialize(f), x, ::Type{T}) where {T<:Union{Float32,Float64}}
    g = f === (-) ? Core.Intrinsics.sub_float : get(FLOAT_OPERATIONS, f, nothing)
    g === nothing ? plain_call(f, x) : (Expr(:call, g, x...), T)
end
function lean_binary(@nospecialize(f), x, ::Type{Int})
    f === (<) && return Expr(:call, Core.Intrinsics.slt_int, x...), Bool
    g = get(INT_OPERATIONS, f, nothing)
    g === nothing ? plain_call(f, x) : (Expr(:call, g, x...), Int)
end

function lean_call(::typeof(muladd), x, T)
    T[1] in (Float32, Float64) && all(==(T[1]), T) || return plain_call(muladd, x)
    Expr(:call, Core.Intrinsics.muladd_float, x...), T[1]
end

pointer_target(::Type{Ptr{T}}) where {T} = T
pointer_target(::Any) = nothing
function lean_call(::typeof(unsafe_load), x, T)
    target = pointer_target(T[1])
    target === nothing || (length(x) == 2 && T[2] !== Int) ? plain_call(unsafe_load, x) :
    (Expr(:call, Core.Intrinsics.pointerref, x[1], length(x) == 2 ? x[2] : 1, 1), target)
end
function lean_call(::typeof(unsafe_store!), x, T)
    target = pointer_target(T[1])
    target === nothing || T[2] !== target ||
        (length(x) == 3 && T[3] !== Int) ? plain_call(unsafe_store!, x) :
    (Expr(:call, Core.Intrinsics.pointerset, x[1], x[2], length(x) == 3 ? x[3] : 1, 1), nothing)
end
# A value said to be of the type that it has.
lean_call(::typeof(stored), x, T) =
    x[1] === T[2] ? (x[2], T[2]) :
    (first(plain_call(stored, x)), x[1] isa DataType ? x[1] : nothing)
lean_call(::typeof(working), x, T) =
    T[1] in (Float32, Float64) ? (x[1], T[1]) : plain_call(working, x)
lean_call(::typeof(buffer_data), x, T) =
    x[1] isa DataType ? (buffer_address(x...), Ptr{x[1]}) : plain_call(buffer_data, x)
function buffer_address(T, list, k)
    address(p) = :($(Core.Intrinsics.bitcast)(UInt, $p))
    buffer = :($(Core.Intrinsics.pointerref)($list, $k, 1))
    field = :($(Core.Intrinsics.add_int)($(address(buffer)), $(UInt(DATA_OFFSET))))
    :($(Core.Intrinsics.pointerref)($(Core.Intrinsics.bitcast)($(Ptr{Ptr{T}}), $field), 1, 1))
end

"The code with intrinsic functions in place of calls."
select_intrinsics(k::KernelCode) =
    with(k; code = Any[first(lean(ex, k.generator.types)) for ex in k.code])
lean(p::Parallel, types) = with_body(p, first(lean(p.body, types))), nothing

# What Enzyme would get wrong, or die of, and what can be seen in a function's inferred code
# beforehand. Enzyme.jl 0.13.32 gives wrong derivatives of what runs in other tasks, with a warning
# alone, and an assertion in its C++ ends the process at sums of `BigFloat`. Followed are calls
# whose types are inferred, as far as they have to do with the user's code: what throws, and Base's
# own, is left out.

using Enzyme: EnzymeRules
using JaxprAD.Functions: Call, Derivative, EnzymeFailed
import JaxprAD.Functions: refuse_unfit

const MOST_METHODS = 200

refuse_unfit(d::Derivative) = nothing
function refuse_unfit(c::Call)
    reason =
        unfit_code(
            Tuple{
                typeof(apply!),
                typeof(c),
                typeof(each(fresh, c.outputs)),
                map(typeof,
                    each(fresh, c.inputs))...
            }, Set{Any}())
    reason === nothing || throw(EnzymeFailed(reason))
    nothing
end

"The first reason why Enzyme is not to see this code, or what it calls."
function unfit_code(signature, seen)
    (signature in seen || length(seen) > MOST_METHODS) && return nothing
    push!(seen, signature)
    for (code, _) in Base.code_typed_by_type(signature)
        code isa Core.CodeInfo || continue
        for (statement, type) in zip(code.code, map(Core.Compiler.widenconst, code.ssavaluetypes))
            statement isa Expr && statement.head === :(=) && (statement = statement.args[2])
            reason = unfit(type, statement)
            reason === nothing ||
                return string(reason, "; seen in ", described(signature.parameters[1]))
            reason = is_followed(type, statement) ? unfit_code(callee(statement), seen) : nothing
            reason === nothing || return reason
        end
    end
    nothing
end
described(F) = isdefined(F, :instance) ? string(nameof(F.instance)) : string(nameof(F))

function unfit(type, statement)
    big = mentioned_big(type)
    big === nothing || return "Enzyme.jl does not differentiate code with $big: $REMEDY"
    starts_task =
        Meta.isexpr(statement, :foreigncall) &&
        statement.args[1] in (:(:jl_new_task), QuoteNode(:jl_new_task))
    starts_task ?
    "Enzyme.jl does not differentiate code in other tasks (Threads.@spawn, " *
    "@async): $REMEDY" : nothing
end
const REMEDY = "compute otherwise, or give the derivatives by jvp= and vjp="

# Enzyme has its own rule for `Threads.@threads`, and the user's rules stand for the
# code of their functions.
function is_followed(type, statement)
    Meta.isexpr(statement, :invoke) && type !== Union{} || return false
    signature = callee(statement)
    is_user(signature) && signature.parameters[1] !== typeof(Threads.threading_run) &&
        !EnzymeRules.has_rrule_from_sig(signature) && !EnzymeRules.has_frule_from_sig(signature)
end
callee(statement) = (c = statement.args[1]; (c isa Core.MethodInstance ? c : c.def).specTypes)

mentioned_big(T) = nothing
mentioned_big(T::Union) = something(mentioned_big(T.a), mentioned_big(T.b), Some(nothing))
function mentioned_big(T::DataType)
    T === BigFloat || T === BigInt ? T :
    T <: Union{AbstractArray,Tuple,Ref,Complex} ? first_big(T.parameters) : nothing
end
first_big(types) =
    (k = findfirst(t -> mentioned_big(t) !== nothing, collect(Any, types));
    k === nothing ? nothing : mentioned_big(types[k]))

"Whether a type has to do with code from outside of Julia itself."
is_user(T) = false
is_user(T::DataType) =
    !(Base.moduleroot(parentmodule(T)) in (Base, Core)) || any(is_user, T.parameters)

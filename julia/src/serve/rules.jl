# The request for the table of rules.

answer(::Val{:rules}, body, arguments) =
    sprint() do io
        for op in map(primitive, sort!(collect(keys(PRIMITIVES))))
            lacking = join(underived_operands(op), ',')
            println(io, name(op), " ", Int(hasjvp(op)), " ", Int(hastranspose(op)), " ",
                Int(haszerotangent(op)), " ", native_code(op), " ", isempty(lacking) ? "-" :
                                                                    lacking)
        end
    end

"What the native code of a primitive is."
native_code(op::Primitive) =
    hasmethod(element, Tuple{typeof(op),Nest,Equation,Int,Vector{Affine}}) ? "fused" :
    isreduction(op) ? "fused" :
    specialised(emit_step!, op, Frame, Equation) ? "own" :
    specialised(flatten_call!, op, Builder, Equation, Vector{Atom}) ? "inlined" : "none"

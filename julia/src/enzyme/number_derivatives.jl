# Derivatives of functions of numbers, which Enzyme would otherwise differentiate by their bits: the
# JVP rules of elementwise primitives (rules/), on numbers. ext/enzyme_rules.jl makes rules of them.

"""
    partials(f, x...) -> derivatives

The derivatives of `f`, the kernel of an elementwise primitive, by each operand, at those numbers;
0 by an integer. There are methods for Float32 and Float64 once `define_partials` has made them."""
function partials end

"Whether there are `partials` of a function, so that Enzyme need not look into it."
hasderivative(f) = any(n -> hasmethod(partials, Tuple{typeof(f),fill(Float64, n)...}), 1:3)

"""
A Program of the derivatives of a primitive by its operands, numbers of these types: its JVP rule
for a tangent of 1 in each. Nothing where it has no rule for one of them."""
function partials_program(op::Elementwise, types)
    x, b = Var[Var(TensorType(T, Dim[])) for T in types], Builder()
    T = dtype(emit!(b, op, x)[1])
    e = only_equation(b)
    yx = Traced[Traced(b, a) for a in (e.outputs[1], x...)]
    function partial(k)
        isinexact(types[k]) || return Literal(zero(T))
        op.tangents isa Tuple && op.tangents[k] === no_rule && return nothing
        one_ = Union{Traced,Nothing}[j == k ? literal(yx[1+j], 1) : nothing
                              for j in eachindex(types)]
        ẏ = tangent(op, op.tangents, e, one_, yx)
        ẏ === nothing ? Literal(zero(T)) : ẏ.atom
    end
    found = map(partial, eachindex(types))
    any(a -> a === nothing, found) ? nothing :
    dce(Program("partials", x, b.equations, Vector{Atom}(found)))
end
only_equation(b::Builder) =
    (length(b.equations) == 1 || error("expected one equation"); b.equations[1])

"""
The body of a method of `partials`. `form(f, atom)`: the function to call in the place of the kernel
`f` of that operand."""
function partials_body(p::Program, x::Vector{Symbol}, form)
    names = IdDict{Var,Symbol}(zip(p.inputs, x))
    value(a::Literal) = a.value
    value(a::Var) = names[a]
    code = Any[]
    for e in p.equations
        v = names[e.outputs[1]] = Symbol(:v, length(names))
        f = form(kernel(e.op, e.attrs), e.inputs[1])
        push!(code, :($v = convert($(dtype(e.outputs[1])), $f($(map(value, e.inputs)...)))))
    end
    Expr(:block, code..., Expr(:tuple, map(value, p.outputs)...))
end

function define_partials(M::Module, op::Elementwise, types)
    op.attributes === () && length(types) == op.arity &&
        with_dtypes(op.accepts, map(T -> TensorType(T, Dim[]), types), NO_ATTRIBUTES) || return
    p = partials_program(op, types)
    p !== nothing && all(e -> e.op isa Elementwise, p.equations) &&
        all(a -> dtype(a) === types[1], p.outputs) || return
    x = Symbol[Symbol(:x, k) for k in eachindex(types)]
    method(f, form) =
        Core.eval(M,
            :(
                @inline $JaxprAD.partials(::$(typeof(f)),
                    $((:($v::$T) for (v, T) in zip(x, types))...)) = $(partials_body(p, x, form))
            ))
    f = kernel(op, NO_ATTRIBUTES)
    method(f, (g, a) -> g)
    # The form for ordinary arguments has the derivative in the same form.
    fast = fast_form(f, types[1])
    fast === nothing && return
    method(fast[1], (g, a) -> a === p.inputs[1] ? something(fast_form(g, types[1]), (g,))[1] : g)
    method(NumberMath.called(f), (g, a) -> g)
end

"""
Defines the methods of `partials`, in that module: Enzyme's rules alone call them, and making them
takes seconds."""
function define_partials(M::Module)
    for op in values(PRIMITIVES), T in (Float32, Float64)
        op isa Elementwise && !haszerotangent(op) && !(name(op) in PLAIN_NAMES) || continue
        for types in ([T], [T, T], [T, Int32], [T, Int64], [T, T, T])
            define_partials(M, op, types)
        end
    end
end

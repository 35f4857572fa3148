# z / r, where r is a real number that was made complex, as where spectra are divided by squares of
# wavenumbers: part by part, in place of a complex quotient with its care for overflow.

"""
    divide_parts(program) -> Program

The same Program, in which complex numbers are divided by real ones part by part. Values change by
rounding, and where the divisor is zero or a part is infinite."""
function divide_parts(p::Program)
    b, converted = Builder(), IdDict{Var,Atom}()
    for e in p.equations
        b.source = e.source
        isconverted(e) && (converted[e.outputs[1]] = e.inputs[1])
        r = real_divisor(e, converted)
        push!(b.equations, r === nothing ? map_bodies(divide_parts, e) : by_real!(b, e, r))
    end
    dce(with(p; equations = b.equations))
end
"Whether an equation makes real numbers complex."
isconverted(e::Equation) =
    name(e.op) === :convert_element_type && e.inputs[1] isa Var &&
    dtype(e.inputs[1]) === real_dtype(dtype(e.outputs[1])) !== dtype(e.outputs[1])

"The real number by which an equation divides complex ones, or nothing."
function real_divisor(e::Equation, converted)
    name(e.op) === :div && iscomplex(dtype(e.outputs[1])) || return nothing
    r = e.inputs[2]
    r isa Var ? get(converted, r, nothing) :
    iszero(imag(r.value)) ? Literal(real(r.value)) : nothing
end

"The equation that puts the parts of the quotient together, after what divides them."
function by_real!(b::Builder, e::Equation, r::Atom)
    parts = Atom[emit(b, :div, emit(b, part, e.inputs[1]), r) for part in (:real, :imag)]
    Equation(primitive(:complex), parts, e.outputs, Attributes(), e.source)
end

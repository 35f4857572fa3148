# Programs with symbolic dimensions, for arrays of some sizes.

"""
The Program for inputs of these shapes: its symbolic dimensions are numbers. Throws a
`DimensionMismatch` where no numbers fit."""
function at_shapes(p::Program, shapes)
    all(v -> isstatic(aval(v).shape), p.inputs) && return p
    values = Dict{String,Int}()
    wanted = [(d, n) for (v, shape) in zip(p.inputs, shapes)
              for (d, n) in zip(aval(v).shape, shape) if d isa DimExpr]
    # what one dimension says another may need
    for _ in 1:length(wanted), (d, n) in wanted
        solve_dim!(values, d, n)
    end
    for (d, n) in wanted
        dim_value(d, values) == n || throw(DimensionMismatch(
            "a dimension is $n where $d" * (isempty(values) ? "" : " = $(dim_value(d, values))") *
            " is expected"))
    end
    typecheck(at_sizes(p, values))
end

"Finds the one name of a dimension that has no value yet, where it occurs once and not in a power."
function solve_dim!(values, d::DimExpr, n)
    unknown = [m for m in keys(d.terms) if !all(name -> isknown_name(name, values), m)]
    length(unknown) == 1 || return
    open = [name for name in unknown[1] if !isknown_name(name, values)]
    length(open) == 1 && occursin(r"^\w+$", open[1]) || return
    rest = sum(Int[c * prod(Int[name_value(name, values) for name in m])
                   for (m, c) in d.terms if m != unknown[1]])
    factor = d.terms[unknown[1]] *
             prod(Int[name_value(name, values) for name in unknown[1] if name != open[1]])
    factor != 0 && rem(n - rest, factor) == 0 && (values[open[1]] = div(n - rest, factor))
end

"The value of a dimension; nothing where a name in it has none."
dim_value(n::Int, values) = n
dim_value(d::DimExpr, values) = dim_value(d.terms, values)
function dim_value(terms::Terms, values)
    all(m -> all(name -> isknown_name(name, values), m), keys(terms)) || return nothing
    sum(Int[c * prod(Int[name_value(name, values) for name in m]) for (m, c) in terms])
end

isknown_name(name, values) = name_value(name, values) !== nothing
"The value of a name, or of a call such as `floordiv(b, 2)`."
function name_value(name, values)
    call = match(r"^(\w+)\((.*)\)$", name)
    call === nothing && return get(values, name, nothing)
    arguments = [dim_value(parse_dim(text), values) for text in split_arguments(call[2])]
    any(isnothing, arguments) && return nothing
    f = call[1]
    f == "floordiv" ? fld(arguments...) : f == "mod" ? mod(arguments...) :
    f == "max" ? max(arguments...) : f == "min" ? min(arguments...) :
    throw(ProgramTypeError("$f is no function of dimensions"))
end
function split_arguments(text)
    found, depth, from = SubString{String}[], 0, 1
    for (k, c) in pairs(text)
        depth += (c == '(') - (c == ')')
        c == ',' && depth == 0 || continue
        push!(found, SubString(text, from, prevind(text, k)))
        from = k + 1
    end
    push!(found, SubString(text, from))
end

function at_sizes(p::Program, values)
    renamed = IdDict{Var,Var}()
    variable(v::Var) = get!(() -> Var(at_sizes(v.type, values)), renamed, v)
    variable(a::Literal) = a
    inputs = Var[variable(v) for v in p.inputs]
    equations = Equation[
        with(e; inputs = Atom[variable(a) for a in e.inputs],
            outputs = Var[variable(v) for v in e.outputs],
            attrs = Attributes(k => at_sizes(x, values) for (k, x) in e.attrs))
        for e in p.equations
    ]
    with(p; inputs = inputs, equations = equations, outputs = Atom[variable(a) for a in p.outputs])
end
at_sizes(t::TensorType, values) = TensorType(t.dtype, Dim[at_sizes(d, values) for d in t.shape])
at_sizes(d::DimExpr, values) = something(dim_value(d, values), d)
at_sizes(x, values) = x
at_sizes(programs::Vector{Program}, values) = Program[at_sizes(p, values) for p in programs]
at_sizes(dims::Vector{Dim}, values) = narrowed(Any[at_sizes(d, values) for d in dims])
at_sizes(x::Vector{Any}, values) = Any[at_sizes(v, values) for v in x]

# First derivatives of calls by backends of ADTypes.jl, through DifferentiationInterface.jl
# (Dalle & Hill, arXiv 2505.05542): the user's choice instead of Enzyme.

"""
The derivative of a call by a backend. Backends take functions of one array: all active operands are
one vector, one after another as they lie in memory, and so are the inexact results. `prepared` has
what the first run found out, for the types and shapes of the call."""
struct ByBackend{D<:Derivative,B,I,O}
    derivative::D
    backend::B
    inputs::I
    outputs::O
    prepared::Base.RefValue{Any}
end
ByBackend(d::Derivative, backend) =
    ByBackend(d, backend, d.inputs, d.outputs, Base.RefValue{Any}(nothing))

function execute!(d::ByBackend, results::Tuple, operands::Tuple)
    differentiate!(d, results, each(copy, operands)...)
    nothing
end

"A call as a function of the vector of its operands at `Active`, and of all operands."
struct OfVector{C,Active} <: Function
    of::C
end
vector_function(d::Union{Pushforward{C,A},Pullback{C,A}}) where {C,A} = OfVector{C,A}(d.of)

function (f::OfVector{C,A})(x::AbstractVector, operands::Tuple) where {C,A}
    parts = each_part(x, each(size, pick(operands, Val(A))))
    joined(inexact_leaves(f.of, value(f.of, x, replaced(operands, Val(A), parts))))
end

"Arrays of these sizes, whose elements follow one another in the vector."
each_part(x, sizes::Tuple) = each_part(x, sizes, 0)
each_part(x, ::Tuple{}, before) = ()
function each_part(x, sizes::Tuple, before)
    n = prod(first(sizes))
    (reshape(x[before+1:before+n], first(sizes)), each_part(x, Base.tail(sizes), before + n)...)
end
joined(parts::Tuple) = reduce(vcat, each(vec, parts))

"The operands with others at these places."
@generated replaced(x::Tuple, ::Val{A}, parts::Tuple) where {A} =
    Expr(:tuple,
        ((k = findfirst(==(i), A); k === nothing ? :(x[$i]) : :(parts[$k]))
         for i in 1:fieldcount(x))...)

"What the user's function returns, or fills: arrays that hold the backend's numbers, as `x` does."
value(c::Call{F,A,R,M,I,O,false}, x, operands) where {F,A,R,M,I,O} =
    c.f(filled(c.arguments, each(m -> shown(c.layout, m), operands))...)
function value(c::Call{F,A,R,M,I,O,true}, x, operands) where {F,A,R,M,I,O}
    outs = each(s -> arranged(c.layout, zeros_like(x, s)), c.outputs)
    results = filled(c.results, outs)
    c.f(results, filled(c.arguments, each(m -> shown(c.layout, m), operands))...)
    results
end
function zeros_like(x, s::Spec{T,N}) where {T,N}
    # a backend's integers may be of a type that nothing tells here; these results are not used
    isinexact_spec(s) ||
        return known_dtype(eltype(x)) ? fresh(s) : fill!(Array{Any,N}(undef, s.size), zero(T))
    y = similar(x, promote_type(eltype(x), eltype_of(s)), s.size)
    fill!(y, zero(eltype(y)))
end

"The inexact results by their slots, each as an array in the order of memory."
function inexact_leaves(c::Call, y)
    found = leaves_at(c, c.results, y)
    each(in_memory, pick(found, inexact_places(c)))
end
@generated inexact_places(::Call{F,A,R,M,I,O}) where {F,A,R,M,I,O} =
    Val(Tuple(k for (k, s) in enumerate(O.parameters) if isinexact(s.parameters[1])))

leaves_at(c, ::Slot{I}, y::Number) where {I} =
    isempty(c.outputs[I].size) ? (y,) : mismatch(c, Val(I), y)
leaves_at(c, ::Slot{I}, y::AbstractArray) where {I} =
    size(y) == reverse(c.outputs[I].size) ? (y,) : mismatch(c, Val(I), y)
leaves_at(c, ::Slot{I}, y) where {I} = mismatch(c, Val(I), y)
leaves_at(c, ::Nothing, y) = ()
leaves_at(c, t::Tuple, y::Tuple) =
    length(t) == length(y) ? all_leaves(c, t, y) : mismatch(t, y)
leaves_at(c, t::NamedTuple{K}, y::NamedTuple) where {K} =
    issubset(K, keys(y)) && length(K) == length(y) ?
    all_leaves(c, Tuple(t), each(k -> getfield(y, k), K)) : mismatch(t, y)
leaves_at(c, t, y) = mismatch(t, y)
all_leaves(c, ::Tuple{}, ::Tuple{}) = ()
all_leaves(c, t::Tuple, y::Tuple) =
    (leaves_at(c, first(t), first(y))..., all_leaves(c, Base.tail(t), Base.tail(y))...)

in_memory(y::Number) = [y]
in_memory(y::AbstractArray) = vec(collect(in_python_order(y)))
in_memory(y::AbstractVector) = y
in_memory(y::AbstractArray{T,0}) where {T} = [y[]]

"Spreads a vector over the memory of the results."
function distribute!(results::Tuple, y::AbstractVector)
    before = 0
    for m in results
        m .= reshape(view(y, before+1:before+length(m)), size(m))
        before += length(m)
    end
end

# ---- finding backends

"The package that a constructor of ADTypes needs, by its name."
package_of(constructor::AbstractString) =
    get(OTHER_PACKAGES, constructor, replace(constructor, r"^Auto" => ""))
const OTHER_PACKAGES = Dict("AutoMooncakeForward" => "Mooncake", "AutoJaxprAD" => "JaxprAD",
    "AutoSimpleFiniteDiff" => "DifferentiationInterface")
"Those whose first derivatives can be asked for without more than their names."
const KNOWN_BACKENDS = ["AutoForwardDiff", "AutoPolyesterForwardDiff", "AutoReverseDiff",
    "AutoTracker", "AutoZygote", "AutoMooncake", "AutoDiffractor", "AutoFiniteDiff"]

const INTERFACE = ("ADTypes", "DifferentiationInterface")
is_there(package) = Base.identify_package(package) !== nothing

"The known backends that this Julia has packages for."
available_backends() =
    VERSION >= v"1.9" && all(is_there, INTERFACE) ?
    [string(name, "()") for name in KNOWN_BACKENDS if is_there(package_of(name))] : String[]

"""
The backend that code such as `AutoForwardDiff(; chunksize = 4)` makes, its packages loaded."""
function backend(code::AbstractString)
    constructor = String(match(r"^\w+", code).match)
    packages = unique([INTERFACE..., package_of(constructor)])
    absent = filter(p -> p != "JaxprAD" && !is_there(p), packages)
    VERSION >= v"1.9" && isempty(absent) || throw(EngineUnavailable(missing_packages(code, absent)))
    place = Module(:Backend)
    modules = map(loaded, packages)
    for (package, m) in zip(packages, modules)
        Core.eval(place, :(const $(Symbol(package)) = $m))
        Core.eval(place, :(using .$(Symbol(package))))
    end
    home = findfirst(m -> isdefined(m, Symbol(constructor)), modules)  # not all are exported
    home === nothing && throw(EngineUnavailable("there is no $constructor in " *
                                                join(packages, ", ")))
    Core.eval(place, :(import .$(Symbol(packages[home])): $(Symbol(constructor))))
    Base.invokelatest(Core.eval, place, Meta.parse(code))
end
loaded(package) =
    package == "JaxprAD" ? parentmodule(@__MODULE__) : Base.require(Base.identify_package(package))
missing_packages(code, absent) =
    VERSION < v"1.9" ?
    "engine=\"$code\" needs Julia 1.10 or newer, with DifferentiationInterface.jl" :
    "engine=\"$code\" needs $(join(absent, " and ")), which this Julia does not have; " *
    "in Julia: import Pkg; Pkg.add([$(join(map(repr, absent), ", "))])"

"One derivative of a call by a backend."
function by_backend(of, made, step)
    of isa Call || throw(EngineUnavailable("second derivatives of a Julia function by " *
        "DifferentiationInterface are not supported; engine=\"enzyme\" has them"))
    ByBackend(derivative(of, step), made)
end

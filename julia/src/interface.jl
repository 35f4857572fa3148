# What can be said of a primitive. Every generic function that a primitive may implement is declared
# here, with its default; `rules/` and `codegen/kernels/` only add methods. In each group the
# functions stand in the order in which a new primitive needs them. Defaults are compiled once for
# all primitives, not for each when a Program first has it, but for those that kernels call.

# ---- types and text: called by the Builder, the parser, the printer and the type checker (`ir/`)

"""
    name(op) -> Symbol

The primitive's name in Program text. Required; `@primitive` defines it."""
function name end

"""
    attributes(op) -> Tuple of Symbols

The attributes that an equation of this primitive carries, in print order. Required; `@primitive`
defines it."""
function attributes end

"""
    required_attributes(op) -> Tuple of Symbols

The attributes that must stand in the text. Called by the parser."""
required_attributes(@nospecialize(op::Primitive)) = attributes(op)

"""
    declared_attributes(op, attrs, types) -> attrs

The attributes with what the binders' types add, where the shape rule cannot find a result's type in
operands and attributes. Called by the parser."""
declared_attributes(@nospecialize(op::Primitive), attrs, types) = attrs

"""
    infer(op, types::Vector{TensorType}, attrs) -> Vector{TensorType}

The shape rule: abstract values of the results; throws `ProgramTypeError` when operands do not fit.
Required. Called by `emit!` and `typecheck`."""
function infer end

"""
    iselementwise(op) -> Bool

Whether literals may be operands together with arrays, and literals alone give a literal. Called by
`typecheck`, `apply` and `simplified`."""
iselementwise(@nospecialize(op::Primitive)) = false

# ---- values: called by `evaluate(program, x)`

"""
    evaluate(op, x::Vector, attrs, types::Vector{TensorType}) -> Vector

The values of the results (`types` are their abstract values). Arrays are Julia arrays with the
dimensions in reverse order, so that memory is row-major: JAX's axis `k` (from 0) of an array of
rank `n` is Julia's dimension `n - k`. Required."""
function evaluate end

# ---- derivatives: called by `ad/`

"An operand's tangent, or a result's cotangent: `nothing` stands for zero."
const MaybeAtom = Union{Atom,Nothing}

"Marks a linear operand in a transpose rule: its value is not known, only its abstract value."
struct Undefined
    type::TensorType
end
aval(u::Undefined) = u.type
dtype(u::Undefined) = u.type.dtype
const Operand = Union{Var,Literal,Undefined}
islinear(x::Operand) = x isa Undefined

"""
    haszerotangent(op) -> Bool

Whether the results have zero tangents whatever the operands' are (comparisons, floor, argmax …)."""
haszerotangent(@nospecialize(op::Primitive)) = false

"""
    linear_operands(op, eqn) -> collection of operand positions

The operands in which the primitive is jointly linear, the others being fixed. The default JVP of
such a primitive applies it to the tangents."""
linear_operands(@nospecialize(op::Primitive), eqn) = ()

"""
    jvp(op, b::Builder, eqn, x::Vector{Atom}, ẋ::Vector{MaybeAtom}) -> (y, ẏ)

The forward rule: emits into `b` what computes the results `y` and their tangents `ẏ` (`nothing`
where a tangent is zero). At least one of `ẋ` is not `nothing`. By default from `haszerotangent` and
`linear_operands`; others need a method to have a derivative."""
function jvp(@nospecialize(op::Primitive), b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    haszerotangent(op) && return y, fill!(Vector{MaybeAtom}(undef, length(y)), nothing)
    slots = linear_operands(op, eqn)
    all(i -> ẋ[i] === nothing || i in slots, eachindex(ẋ)) ||
        throw(UnsupportedPrimitive(string(name(op)), "has no JVP rule", eqn.source))
    tangents = Atom[i in slots ? instantiate(b, ẋ[i], x[i]) : x[i] for i in eachindex(x)]
    y, Vector{MaybeAtom}(emit!(b, op, tangents, eqn.attrs))
end

"""
    transpose(op, b::Builder, eqn, ȳ::Vector{MaybeAtom}, x::Vector{Operand}) -> Vector{MaybeAtom}

The transpose rule: the primitive is linear in the operands that are `Undefined`; gives their
cotangents (`nothing` for zero, and for the other operands). At least one of `ȳ` is not
`nothing`."""
transpose(@nospecialize(op::Primitive), b, eqn, ȳ, x) = throw(
    UnsupportedPrimitive(
        string(name(op)),
        "has no transpose rule: it is not linear in the operands differentiated",
        eqn.source)
)

"""
    partial_eval(op, eqn, known::Vector{Bool}) -> (known_equations, unknown_equations)

The split of an equation of which some operands are known and some not. Results bound by the known
equations are known. By default nothing is: the whole equation waits. Primitives with bodies split
those. `eqn`'s output variables must be bound in exactly one of the two lists. Called by
`partial_eval(program, …)`, and so by `linearize` and `transpose`."""
partial_eval(@nospecialize(op::Primitive), eqn, known) = (Equation[], [eqn])

"""
    partial_eval_saving(op, eqn, known::Vector{Bool}, depth) -> (early, late, saved)

The split of an equation inside of a checkpoint: the equations `early` compute the known results and
the variables `saved`; `late`, all results, from all operands and `saved`. `depth` is the number of
checkpoints around the equation inside of the one whose policy decides. By default nothing in an
equation is saved. Called by `partial_eval_saving(program, …)`, which checkpoints use."""
partial_eval_saving(@nospecialize(op::Primitive), eqn, known, depth) =
    (all(known) ? [eqn] : partial_eval(op, eqn, known)[1], [eqn], Var[])

"""
    ischeap(op) -> Bool

Whether the results are cheaper to recompute from the operands than to keep as residuals
(broadcasts, iota). Called by `partial_eval` and `rematerialize`."""
ischeap(@nospecialize(op::Primitive)) = false

"""
    keepsvalues(op) -> Bool

Whether the results are the operands, kept from being computed in several places
(`optimization_barrier`). Of operands that are in memory it may be repeated. Called by
`rematerialize`."""
keepsvalues(@nospecialize(op::Primitive)) = false

"""
    underived_operands(op) -> Vector{Int}

The positions, from 0, of operands by which no derivative is known though by others it is. Called by
the table of rules (`serve/`)."""
underived_operands(@nospecialize(op::Primitive)) = Int[]

"""
    hasjvp(op), hastranspose(op) -> Bool

Whether there are rules. Called by the table of rules (`serve/`)."""
hasjvp(@nospecialize(op::Primitive)) = !haszerotangent(op)
hastranspose(@nospecialize(op::Primitive)) =
    specialised(transpose, op, Builder, Equation, Vector{MaybeAtom}, Vector{Operand})
"Whether `f` has a method for this primitive, apart from that for any."
specialised(f, @nospecialize(op::Primitive), rest...) =
    which(f, Tuple{typeof(op),rest...}) !== which(f, Tuple{Primitive,rest...})

"""
    unwrapped(op, eqn, depth) -> equation

The equation outside of the checkpoint that is `depth` checkpoints around it, whose policy then no
longer asks about it. Called where a checkpoint's body is inlined."""
unwrapped(@nospecialize(op::Primitive), eqn, depth) = map_bodies(p -> unwrapped(p, depth), eqn)

# ---- passes: called by `ir/dce.jl` and `passes/`

"""
    prune(op, eqn, used::Vector{Bool}) -> Vector{Equation}

The equations that replace `eqn` when only the results marked in `used` (at least one) are needed.
Primitives with bodies drop what only the unused results need. Called by dead code elimination."""
prune(@nospecialize(op::Primitive), eqn, used) = [eqn]

"""
    simplify(op, eqn, x, definition) -> Atom or Vector{Equation} or nothing

What may stand for a one-result equation of `op` with operands `x`: an atom, or equations of which
the last binds the result; `definition(a)` is the equation that binds `a`, or `nothing`. Gives
`nothing` when there is nothing better. Called by `simplified`."""
simplify(@nospecialize(op::Primitive), eqn, x, definition) = nothing

"""
    absorbed(op, eqn, definition) -> Equation or nothing

What stands for a one-result equation without a transposition of one of its operands before it;
`definition` as for `simplify`. Called by `absorb_transposes`."""
absorbed(@nospecialize(op::Primitive), eqn, definition) = nothing

"Whether the operands may change places. Called by common subexpression elimination."
iscommutative(@nospecialize(op::Primitive)) = false

"""
Whether equal equations may be one: what is rematerialised is meant to be computed twice, and a
user's own rule stays as it stands. Called by common subexpression elimination."""
ismergeable(@nospecialize(op::Primitive)) = true

"""
    distinct_results(op, eqn) -> (equation, places)

The equation without results that equal others, and for each result the place of what it equals
among those that are left. Called by `simplified`."""
distinct_results(@nospecialize(op::Primitive), eqn) = eqn, eachindex(eqn.outputs)

"""
    inlined_body(op, eqn) -> Program or nothing

The Program whose equations may stand in the place of `eqn`. Called by `simplified`."""
inlined_body(@nospecialize(op::Primitive), eqn) = nothing

"""
    fill_literal(op, eqn) -> Literal or nothing

The literal that all elements of the result equal. Called by `simplified`."""
fill_literal(@nospecialize(op::Primitive), eqn) = nothing

"""
    linear_slots(op, eqn) -> operand positions

The operands in which the primitive is linear with all others fixed, where adding before applying it
is no more work than after, and as good as never overflows where adding after does not. Called by
`factor_sums`."""
linear_slots(@nospecialize(op::Primitive), eqn) = ()

"""
    standard_axes(op, eqn, slot) -> axes, attributes

The order that an operand's axes could be brought in, and the attributes that `eqn` would have then:
the same for all equations that apply the same linear map to that operand, however its axes lie.
Called by `factor_sums` for linear slots."""
standard_axes(@nospecialize(op::Primitive), eqn, slot) =
    collect(0:ndims(aval(eqn.inputs[slot]))-1), eqn.attrs

"""
    flatten_call!(op, b::Builder, eqn, x) -> results or nothing

Emits what a native kernel does in the place of an equation with operands `x`: calls that mean
something to transforms only are written out. `nothing` where the equation stays. Called by
`flatten_calls`."""
flatten_call!(@nospecialize(op::Primitive), b, eqn, x) = nothing

"""
    hoist_invariants!(op, hoisted::Hoisted, eqn) -> equation

The loop without what is the same in every trip, which goes to the equations before it. Called by
the pass of that name; primitives that run a body many times have methods."""
hoist_invariants!(@nospecialize(op::Primitive), hoisted, eqn) = eqn

"""
    loop_constants(op, eqn, definition) -> equations

A loop with what is the same in every trip as a constant, or as a broadcast inside of its body, and
the equations that bind those of its results that are such. `definition[a]` binds the variable `a`.
Called by the pass of that name; by default nothing changes."""
loop_constants(@nospecialize(op::Primitive), eqn, definition) = [eqn]

"""
    one_loop(op, first, second) -> equation or nothing

The loop that does in each trip what two loops do, of which the second reads what the first stacks,
slice by slice in the same order, and nothing else of it. Called by `merge_loops`."""
one_loop(@nospecialize(op::Primitive), first_, second) = nothing

"""
    begun_with(op, eqn, k, term, definition) -> equation or nothing

A loop whose `k`-th result is summed up from zeros, begun with `term` in their place, where the
order of the terms matters no more than rounding does. `definition[a]` binds the variable `a`.
Called by `begin_sums`."""
begun_with(@nospecialize(op::Primitive), eqn, k, term, definition) = nothing

"""
    movesonly(op, eqn) -> Bool

Whether a loop does nothing but move elements, so that its stacks may be computed again. Called by
`costs.jl` and `merge_loops`."""
movesonly(@nospecialize(op::Primitive), eqn) = false

"""
    overwritten(op, b::Builder, eqn) -> Atom or nothing

Of a primitive whose result is its first operand but for a part: reads that part, by one equation
whose further operands say where. `nothing` of others. Called where a loop keeps what its trips
overwrite."""
overwritten(@nospecialize(op::Primitive), b, eqn) = nothing

"""
    write_back(op, b::Builder, eqn, result, part, where_) -> Atom

The first operand again, from the result and the part that `overwritten` has read, `where_` it
says."""
function write_back end

"""
    static_windows(op, b::Builder, eqn, known) -> Atom or nothing

The result by equations that have the places of windows in their attributes or as literals, where
`known(a)` gives the elements of the operands that say them (`nothing` where they are not known).
Called by the pass of that name."""
static_windows(@nospecialize(op::Primitive), b, eqn, known) = nothing

"""
    window_sizes(op, eqn, k) -> sizes or nothing

The sizes, along each of its axes, of the windows in which an operation reads or overwrites operand
`k`; `nothing` where it does something else with it, or the axes have to stay in their order. Called
by `reorder_carries`."""
window_sizes(@nospecialize(op::Primitive), eqn, k) = nothing

"""
    in_order(op, b::Builder, eqn, order, operand) -> Atom

The result on `operand`, which has the axes of the operand in which there are windows in another
order: in that order too where the operation overwrites it, else as it was. Called by
`reorder_carries` for operations with `window_sizes`."""
function in_order end

"""
    reorder_carries(op, eqn) -> equations

A loop in which carried arrays have their axes in the order that the trips want. Called by the pass
of that name, whose `window_order` says it; by default nothing changes."""
reorder_carries(@nospecialize(op::Primitive), eqn) = Equation[eqn]

"""
    with_axes(op, eqn, order, given) -> (attributes, orders) or nothing

What gives an equation's one result with its axes in `order`: attributes, and the order in which the
equation then has the axes of each operand, if possible the `given` one. Called by
`structures_of_arrays`; by default for primitives that are pointwise."""
with_axes(@nospecialize(op::Primitive), eqn, order, given) =
    ispointwise(op, eqn) ? (eqn.attrs, [isscalar(a) ? Int[] : order for a in eqn.inputs]) : nothing

"""
    structures_of_arrays(op, eqn, layout) -> (equation, orders, orders)

A loop on operands whose axes are in other orders, which its body had better have, and these orders
of the operands and of the results. Called by the pass of that name; by default those that they
have."""
structures_of_arrays(@nospecialize(op::Primitive), eqn, layout) =
    map_bodies(p -> structures_of_arrays(p, layout), eqn), map(own_order, eqn.inputs),
    map(own_order, eqn.outputs)

"""
    elementwise_form(op, eqn) -> Vector{Equation} or nothing

Equations that compute the same element by element, in arrays whose longest axis is the first:
products of matrices as sums of products. Called by `structures_of_arrays`."""
elementwise_form(@nospecialize(op::Primitive), eqn) = nothing

"""
    stacked_records(op, eqn) -> numbers

Which results of a loop are stacks of records (`pack_loop_residuals`) of the items of a batch.
Called by `transpose_records`; by default none."""
stacked_records(@nospecialize(op::Primitive), eqn) = Int[]

"""
    transpose_stacks(op, eqn, sources, results) -> equation

A loop that transposes slices itself: of operands that equations in `sources` give, which keep the
first axis, and of results of which only an equation in `results` reads anything. Called by the pass
of that name; by default nothing changes."""
transpose_stacks(@nospecialize(op::Primitive), eqn, sources, results) = eqn

"""
    wanted_layout(op, eqn, k) -> axes or nothing

The order in which an operation would have the axes of operand `k` in memory, or nothing where it
does not matter. Called by `assign_layouts`."""
wanted_layout(@nospecialize(op::Primitive), eqn, k) = nothing

"""
    with_layouts(op, eqn, orders, transposed) -> equation

The equation on operands whose axes are in memory in the order that it wanted. `transposed[v]` is v
with axes in the order `orders[v]`. Called by `assign_layouts`."""
with_layouts(@nospecialize(op::Primitive), eqn, orders, transposed) = eqn

# ---- native code: called by `codegen/`, and by passes that weigh costs

"""
    isfusable(op, eqn) -> Bool

Whether any single element of the results can be computed alone, from few elements of the operands:
then `element` does."""
isfusable(@nospecialize(op::Primitive), eqn) = false

"""
Whether the primitive reads each operand element at the place of its result's element (operands and
results have one shape)."""
ispointwise(@nospecialize(op::Primitive)) = false
"Whether this equation does: bits read as wider or narrower numbers lie otherwise."
ispointwise(@nospecialize(op::Primitive), eqn) = ispointwise(op) && isfusable(op, eqn)

"Whether operand `k`, at least, is read so."
reads_here(@nospecialize(op::Primitive), k) = ispointwise(op)

"""
    reads_elements(op, eqn, k) -> Bool

Whether `emit_step!` or `element` is content with operand `k` element by element; otherwise the
operand must be in memory."""
reads_elements(@nospecialize(op::Primitive), eqn, k) = isfusable(op, eqn)

"Whether `emit_step!` computes the elements that it reads one after the other, never in vectors."
reads_in_turn(@nospecialize(op::Primitive), eqn) = false

"""
    writes_views(op, eqn, k) -> Bool

Whether `emit_step!` writes result `k` where it is wanted though that is a part of an array, whose
rows lie apart."""
writes_views(@nospecialize(op::Primitive), eqn, k) = false

"""
    with_items(op, eqn, n, m) -> attributes

The attributes of the equation for m independent items in place of n, or nothing where the results
of an item are not computed from that item's operands alone. An array of items has one axis of size
n, the items'. By default for primitives that are pointwise. Called by `narrowed`."""
with_items(@nospecialize(op::Primitive), eqn, n, m) = ispointwise(op, eqn) ? eqn.attrs : nothing

"""
What computing one element costs, without its operands' elements, an addition being 1
(`costs.jl` has the limits)."""
cost(@nospecialize(op::Primitive), eqn) = 0

"""
Whether the operation computes nothing: it gives the operand's memory another type, or a constant.
What cannot be fused and is not free is expensive."""
isfree(@nospecialize(op::Primitive)) = false

"""
    element(op, nest, eqn, slot, index::Vector{Affine}) -> Symbol or number

Adds to a loop nest what computes the element of result `slot` at `index`. Required
where `isfusable`."""
function element end

"""
    emit_step!(op, frame, eqn)

Emits the code of an equation that stands for itself (is neither fusable nor a reduction), and gives
each result its `Storage`."""
emit_step!(@nospecialize(op::Primitive), frame, eqn) =
    throw(UnsupportedPrimitive(string(name(op)), "has no native kernel", eqn.source))

"""
    overwrites(op, eqn) -> 0 or an operand position

The operand whose memory the result may take over when nobody needs the operand afterwards."""
overwrites(@nospecialize(op::Primitive), eqn) = 0

"""
    replaced_operand(op, eqn, k) -> Atom or nothing

The operand in whose memory result `k` may be computed when nobody needs the operand afterwards: the
one that `overwrites` tells, and of what a loop carries the one that it starts from."""
replaced_operand(@nospecialize(op::Primitive), eqn, k) =
    (n = overwrites(op, eqn); n > 0 ? eqn.inputs[n] : nothing)

"""
    kernel(op, attrs) -> Function

An elementwise primitive as a function of numbers. Its result may be wider than the primitive's and
is then rounded once. Called by `evaluate` and `element`."""
function kernel end

"""
    isnative(op, dtypes...; attrs...) -> Bool

Whether `kernel(op, attrs)` of these dtypes touches no heap and throws nothing, so that any thread
may run it; `test/math/native.jl` reads it in LLVM's code of each."""
isnative(@nospecialize(op::Primitive), dtypes::DataType...; attrs...) = false

"""
    isreduction(op) -> Bool

Whether the results are those of `combiner(op)` over the axes in the attribute `axes`: loop nests
then compute it with what else has the domain. Called by the plan."""
isreduction(@nospecialize(op::Primitive)) = false

"""
    combiner(op) -> Function, neutral(op, T) -> number

Of a reduction, what combines two values, and the accumulator of type T that changes nothing."""
function combiner end
function neutral end

"""
    lane(op, T) -> type, to_lane(op, T, x), combine_lanes(op, T, a, b), from_lane(op, T, x)

Along the last axis of a nest, a reduction's accumulator of type T is one of the processor's lanes:
its type there, the way to it, what combines two, and the way back. By default the accumulator
itself."""
lane(op::Primitive, T) = T
to_lane(op::Primitive, T, x) = x
combine_lanes(op::Primitive, T, a, b) = stored(T, combiner(op)(a, b))
from_lane(op::Primitive, T, x) = x

# ---- Enzyme: called by `enzyme/`

"""
    isopaque(op, eqn) -> Bool

Whether an equation goes to a native kernel with derivatives by rules, which Enzyme
does not look into."""
isopaque(@nospecialize(op::Primitive), eqn) = true

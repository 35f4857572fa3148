# What Enzyme is not asked to differentiate: parts of a Program that stay native kernels of their
# own, with derivatives by JVP rules and transposition, which reach Enzyme as rules for
# `call_region`. These are users' custom rules, which must be honoured; what has no loops of numbers
# (LAPACK, Fourier transforms, sorting, complex and special functions); and arithmetic on large
# arrays, where a fused kernel does in one pass what Enzyme does in several, saving values in
# between. Loops, branches, indices and small arrays are Enzyme's.

abstract type Mode end
struct ReverseMode <: Mode end
struct ForwardMode <: Mode end

"Native code and the bytes of workspace that it takes."
struct NativeCode
    pointer::Ptr{Cvoid}
    workspace::Int
end
NativeCode(k::Kernel) = NativeCode(k.pointer, k.workspace)

"A part as a primitive; its attribute `kernels` is what is called."
struct OpaqueRegion <: Primitive end
name(::OpaqueRegion) = :opaque_region

"""
Kernels of a part with `I` operands and `O` results: of its value, and of one derivative.

- reverse: (x…, cotangents of the inexact results…, x̄…) → x̄ with what comes from these results
  added, for the active operands
- forward: (x…, tangents of the active operands…) → tangents of the inexact results
"""
struct RegionKernels{M<:Mode,I,O}
    value::NativeCode
    derivative::NativeCode
    operands::NTuple{I,Int}     # bytes
    results::NTuple{O,Int}
    active::NTuple{I,Bool}
    inexact_results::NTuple{O,Bool}
end

function RegionKernels(p::Program, mode::Mode, active)
    masks = (Tuple(active), Tuple(inexact(p.outputs)))
    sizes_(atoms) = Tuple(Int[bytes(aval(a)) for a in atoms])
    known = any(masks[1]) && any(masks[2])
    code = known ? NativeCode(compile(region_derivative(p, mode, active))) : NativeCode(C_NULL, 0)
    RegionKernels{typeof(mode),length(p.inputs),length(p.outputs)}(NativeCode(compile(p)), code,
        sizes_(p.inputs), sizes_(p.outputs), masks...)
end

function region_derivative(p::Program, ::ForwardMode, active)
    q = optimize(jvp(p, active))
    q = dce(with(q; outputs = q.outputs[length(p.outputs)+1:end]))
    for e in q.equations
        e.op isa CustomVJPTangent && forward_mode_error(e.source)
    end
    q
end

"""
Enzyme's shadow of a complex number is the gradient by both parts, which is the conjugate of JAX's
cotangent."""
function region_derivative(p::Program, ::ReverseMode, active)
    q = vjp(p, active)
    b, x = Builder(), fresh(p.inputs)
    given, sums = fresh(q.inputs[length(x)+1:end]), fresh(q.outputs)
    x̄ = inline!(b, q, vcat(x, Atom[conjugate(b, ȳ) for ȳ in given]))
    x̄ = Atom[conjugate(b, v) for v in x̄]
    o = optimize(Program(string("vjp_", p.name), vcat(x, given), b.equations, x̄))
    b, inputs = Builder(), fresh(o.inputs)
    Program(o.name, vcat(inputs, sums), b.equations,
        Atom[emit(b, :add, s, v) for (s, v) in zip(sums, inline!(b, o, inputs))])
end
conjugate(b, v) = dtype(v) <: Complex ? emit(b, :conj, v) : v

# ---- which equations

"The Program in which the parts that Enzyme leaves alone are opaque regions."
function opaque_regions(p::Program, mode::Mode, active)
    equations, run = Equation[], Equation[]
    later, active_vars = uses_after(p), VarSet(p.inputs[active])
    flush!(k) =
        isempty(run) ||
        (push!(equations, opaque_region(p, copy(run), later[k], mode, active_vars)); empty!(run))
    for (k, e) in enumerate(p.equations)
        check_cancelled()
        any(a -> a in active_vars, e.inputs) &&
            union!(active_vars, (v for v in e.outputs if isinexact(dtype(v))))
        if isopaque(e.op, e)
            push!(run, e)
        else
            flush!(k)
            push!(equations, hasbodies(e) ? bodies_with_regions(e, mode) : e)
        end
    end
    flush!(length(p.equations) + 1)
    with(p; equations = equations)
end

"In bodies all that is inexact is active."
bodies_with_regions(e::Equation, mode) =
    with(e; attrs = Attributes(k => with_regions(v, mode) for (k, v) in e.attrs))
with_regions(v, mode) = v
with_regions(p::Program, mode) = opaque_regions(p, mode, inexact(p.inputs))
with_regions(ps::Vector{Program}, mode) = Program[with_regions(p, mode) for p in ps]

"For each equation, and the end, the variables read there or later."
function uses_after(p::Program)
    uses = Vector{VarSet}(undef, length(p.equations) + 1)
    uses[end] = VarSet(a for a in p.outputs if a isa Var)
    for k in length(p.equations):-1:1
        uses[k] = union!(copy(uses[k+1]), (a for a in p.equations[k].inputs if a isa Var))
    end
    uses
end

function opaque_region(p, run, later, mode, active_vars)
    made = VarSet(v for e in run for v in e.outputs)
    inputs = unique(a for e in run for a in e.inputs if a isa Var && !(a in made))
    outputs = [v for e in run for v in e.outputs if v in later]
    body = Program(string(p.name, "_part"), Vector{Var}(inputs), run, Vector{Atom}(outputs))
    kernels = RegionKernels(body, mode, Bool[v in active_vars for v in inputs])
    Equation(OpaqueRegion(), Vector{Atom}(inputs), Vector{Var}(outputs),
        Attributes(:kernels => kernels), run[1].source)
end

isopaque(op::Union{Scan,While,Cond,Remat,OptimizationBarrier,Saveable}, e) = false
const Plain =
    Union{BroadcastInDim,Squeeze,Permute,Rev,Slice,DynamicSlice,SplitAxis,Iota,Reshape,Concatenate,
        DynamicUpdateSlice,Constant,
        ReduceSum}
isopaque(op::Plain, e) = is_large(e) || !are_plain(e)
# Beyond a size these are calls of BLAS.
isopaque(op::DotGeneral, e) =
    is_large(e) || !are_plain(e) ||
    size_of(shape(e.outputs[1])) * extent(e.inputs[1], e[:lhs_contract]) > SMALL_PRODUCT
isopaque(op::Elementwise, e) =
    is_large(e) || !are_plain(e) || !(name(op) in PLAIN_NAMES || hasderivative(kernel(op, e.attrs)))

is_large(e::Equation) =
    any(a -> size_of(shape(a)) > LARGE_ARRAY, e.inputs) ||
    any(v -> size_of(shape(v)) > LARGE_ARRAY, e.outputs)
const PLAIN_DTYPES = (Float32, Float64, Bool, Int8, Int16, Int32, Int64, UInt8, UInt16,
    UInt32, UInt64)
are_plain(e::Equation) =
    all(a -> dtype(a) in PLAIN_DTYPES, e.inputs) && all(v -> dtype(v) in PLAIN_DTYPES, e.outputs)
"Arithmetic that Enzyme differentiates by itself. Not `stop_gradient`, which is an identity to it."
const PLAIN_NAMES = (:add, :sub, :mul, :div, :neg, :square, :integer_pow, :eq, :ne, :lt, :le, :gt,
    :ge, :and, :or, :not, :xor, :select_n, :floor, :ceil, :is_finite, :convert_element_type,
    :copy)
holds_opaque_regions(p::Program) =
    any(e -> e.op isa OpaqueRegion || any(holds_opaque_regions, bodies(e)), p.equations)

# ---- calling

function emit_step!(::OpaqueRegion, s::Frame, e)
    x = Symbol[memory_of(s, a).pointer for a in e.inputs]
    y = Symbol[memory!(s, v).pointer for v in e.outputs]
    emit_code!(s.generator, :($(call_region)($(e[:kernels]), $POOL, $(x...), $(y...))))
end

"""
Runs an opaque region on addresses of its operands and results. Enzyme has rules
for this function."""
@noinline function call_region(l::RegionKernels{M,I,O}, pool::Ptr{Cvoid},
    addresses::Vararg{Ptr,N}) where {M,I,O,N}
    plain = map(Ptr{Cvoid}, addresses)
    call_native(l.value, pool, plain[1:I], plain[I+1:N])
end

"""
Calls native code on the addresses of its operands and results, with a workspace for the
time of the call."""
function call_native(code::NativeCode, pool::Ptr{Cvoid}, operands::Tuple, results::Tuple)
    # what XLA hands to a kernel: pointers to buffers, of which it reads the data's address
    all_, stride = (operands..., results...), DATA_OFFSET + sizeof(Ptr)
    head = (length(all_) + 1) * (stride + sizeof(Ptr))
    block = allocated(head + code.workspace + ALIGNMENT)
    list, buffer = Ptr{Ptr{Cvoid}}(block), block + (length(all_) + 1) * sizeof(Ptr)
    workspace = block + head
    for (k, address) in enumerate((all_..., workspace + mod(-Int(workspace), ALIGNMENT)))
        unsafe_store!(list, buffer, k)
        unsafe_store!(Ptr{Ptr{Cvoid}}(buffer + DATA_OFFSET), address)
        buffer += stride
    end
    status = call_kernel(code.pointer, list, list + length(operands) * sizeof(Ptr), pool)
    Libc.free(block)
    status == 0 || throw(OutOfMemoryError())
    nothing
end

"Memory of C's, zeroed if so said."
function allocated(bytes::Int; zeroed::Bool = false)
    block = zeroed ? Libc.calloc(bytes, 1) : Libc.malloc(bytes)
    block == C_NULL && throw(OutOfMemoryError())
    block
end

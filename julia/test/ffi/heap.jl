# What runs on XLA's threads is free of Julia's heap, exceptions and dispatch: its LLVM
# code calls nothing else.

using InteractiveUtils
using JaxprAD: FFI

const PAUSE = r"asm sideeffect \"(pause|yield|isb|wfe)"

"The targets of the calls in a function's optimised code: names, and `pointer` for an address."
callees(f, types) = String[callee(line) for line in calls(f, types)]
function calls(f, types)
    code = sprint(io -> code_llvm(io, f, types; raw = true, optimize = true, debuginfo = :none))
    filter(line -> occursin(r"\b(call|invoke)\b", line) && !occursin(PAUSE, line),
        split(code, '\n'))
end
const CALLEE =
    r"\b(?:call|invoke)\b.*?(?:@\"?([^\"(]+)\"?\(|%(?:[\w.]+|\"[^\"]+\")\(|inttoptr|( asm ))"
function callee(line)
    of_c = match(JaxprAD.OF_C, line)        # by its address where there is only that
    of_c === nothing || return of_c[1] in JaxprAD.C_FUNCTIONS ? "pointer" : String(of_c[1])
    # The callee stands before its arguments: a name, or a value that is called.
    found = match(CALLEE, line)
    found === nothing && error("a call that this test does not understand: $line")
    # asm: the thread's own memory, where Julia's heap begins
    found[1] !== nothing ? String(found[1]) : found[2] !== nothing ? "asm" : "pointer"
end

# Julia checks the address of each C function called through a pointer, and throws if it is null,
# which none of ours is.
through_pointer(p::Ptr{Cvoid}) = ccall(p, Cvoid, ())
# Which error is thrown: by its address, or since Julia 1.11 by the name of what holds it.
function thrown(line)
    m = match(r"@i?jl_throw\((.*)\)", line)
    m === nothing && return nothing
    error = match(r"inttoptr \(i64 (\d+)|%(jl_[a-z_]+)", m[1])
    error === nothing ? "another" : something(error.captures...)
end
const NULL_CHECK = only(filter(!isnothing, map(thrown, calls(through_pointer, Tuple{Ptr{Cvoid}}))))

ours(name) = occursin(r"^j_|^julia_", name)
allowed(name) = name == "pointer" || startswith(name, "llvm.") || ours(name)
allowed_call(line) = thrown(line) == NULL_CHECK || allowed(callee(line))

"The names, without Julia's prefix and number, of Julia functions called directly."
called(f, types) =
    Set(Symbol(match(r"^(?:j|julia)_(.*)_\d+$", c)[1]) for c in callees(f, types) if ours(c))

const FRAME, DESCRIPTOR = Ptr{FFI.FFICallFrame}, Ptr{FFI.Descriptor}

"All functions reached from `f`, by name; Julia's own C functions and anything dynamic are errors."
function check_reached(f, types, seen = Set{Symbol}())
    nameof(f) in seen && return seen
    push!(seen, nameof(f))
    for line in calls(f, types)
        @test allowed_call(line) || (line, nameof(f))
    end
    for name in called(f, types)
        @test isdefined(FFI, name) || (name, nameof(f))
        for m in methods(getfield(FFI, name))
            m.sig isa DataType || continue      # checked below for the types that there are
            check_reached(getfield(FFI, name), Base.tuple_type_tail(m.sig), seen)
        end
    end
    seen
end

@testset "handle" begin
    @test :mismatch in check_reached(FFI.handle, Tuple{FRAME,DESCRIPTOR})
end
@testset "parallel_for" begin
    check_reached(FFI.parallel_for, Tuple{Ptr{Cvoid},Int,Ptr{Cvoid},Ptr{Cvoid},Int})
    check_reached(FFI.pool_task, Tuple{Ptr{FFI.Team}})
    for safepoint in (FFI.gc_safepoint, FFI.no_safepoint)
        arguments =
            Tuple{Ptr{Cvoid},Int,Ptr{Cvoid},Ptr{Cvoid},Int,Ptr{Cvoid},typeof(safepoint)}
        @test :pool_size in check_reached(FFI.share_out, arguments)
        check_reached(FFI.await, Tuple{Ptr{FFI.Team},Int,typeof(safepoint)})
    end
end

allocating(p::Ptr{Int})::Ptr{Cvoid} = (push!(Any[], unsafe_load(p)); C_NULL)
dispatching(p::Ptr{Any})::Int = length(unsafe_load(p))
throwing(p::Ptr{Int})::Int = unsafe_load(p) > 0 ? 1 : throw(OverflowError(""))
@testset "the check sees what it is to find" begin
    for (f, types) in ((allocating, Tuple{Ptr{Int}}), (dispatching, Tuple{Ptr{Any}}),
        (throwing, Tuple{Ptr{Int}}))
        @test !all(allowed_call, calls(f, types))
    end
end

# What code refers to by address. In a file that is a table, whose places are filled when the file
# is loaded or linked: no address of this process is in it.

"""
Who fills a file's table: the `Loader`, a process that has a host (host.jl), or the `Linker`, so
that the file needs nothing of the process that loads it (library.jl)."""
abstract type Filler end
struct Loader <: Filler end
struct Linker <: Filler end

"""
A place of the table: a `routine` of BLAS or LAPACK, the data of a `constant` of the Program, a
`function` or `data` of the file itself, a function of the `host` (host.jl), or the `descriptor` of
the kernel (ffi/handler.jl)."""
struct Place
    kind::Symbol
    name::String
end
Base.print(io::IO, p::Place) = print(io, p.kind, ' ', p.name)

"""
The table of a file while its code is made. Code that reads a place of it has an address in a range
that no process uses, by which it is found in LLVM's text and replaced."""
struct OutsideTable{F<:Filler}
    places::Vector{Place}
    data::Vector{Vector}
end
OutsideTable(::F = Loader()) where {F<:Filler} = OutsideTable{F}(Place[], Vector[])

const TABLE_ADDRESS, MOST_PLACES = 0x0000_50b7_1d6e_0000, 8192
"""
What LLVM knows of a constant address: how far it is from a multiple of 64, the widest register's
bytes. By that it chooses instructions, so what takes its place lies in the same way."""
const LINE = 64

"The number of a place, from 0."
function place!(t::OutsideTable, p::Place)
    k = findfirst(==(p), t.places)
    k === nothing || return k - 1
    length(t.places) < MOST_PLACES ||
        throw(NoObjectFile("the kernel refers to more than $MOST_PLACES addresses"))
    push!(t.places, p)
    length(t.places) - 1
end

"Code that gives the pointer at a place."
read_place(t::OutsideTable, p::Place, ::Type{P}) where {P<:Ptr} =
    :($(Core.Intrinsics.pointerref)($(Ptr{P}(TABLE_ADDRESS + 8 * place!(t, p))), 1, 1))

"""
The code with places of the table instead of addresses, and the threads of who
calls it instead of this Julia's."""
outside(@nospecialize(x), t::OutsideTable) = x
outside(p::Ptr, t::OutsideTable) = p == C_NULL ? p : read_place(t, place_of(p, t), typeof(p))
outside(f::FunctionPointer, t::OutsideTable) =
    read_place(t, Place(:function, string(f.name)), Ptr{Cvoid})
function outside(ex::Expr, t::OutsideTable)
    arguments = Any[outside(a, t) for a in ex.args]
    ex.head === :call && ex.args[1] === parallel_for ? parallel_call(t, arguments[2:end]) :
    Expr(ex.head, arguments...)
end

"What `parallel_for` is there: the host's, or a loop in the thread of who calls."
parallel_call(t::OutsideTable{Loader}, arguments) =
    Expr(:call, parallel_for_by_host, read_place(t, Place(:host, "host_parallel_for"), Ptr{Cvoid}),
        arguments...)
parallel_call(::OutsideTable{Linker}, arguments) = Expr(:call, FFI.serial_for, arguments[2:end]...)

@inline parallel_for_by_host(f::Ptr{Cvoid}, pool::Ptr{Cvoid}, chunks::Int, body::Ptr{Cvoid},
    data::Ptr{Cvoid}, falling::Int) =
    @call_address f(pool::Ptr{Cvoid}, chunks::Int, body::Ptr{Cvoid}, data::Ptr{Cvoid},
        falling::Int)::Cvoid

"What is at an address that generated code has."
function place_of(p::Ptr, t::OutsideTable)
    haskey(BLAS_SYMBOLS, p) && return Place(:routine, BLAS_SYMBOLS[p])
    for (ref, values) in CONSTANTS
        pointer(values) == p && return Place(:constant, ref)
    end
    for table in values(FOURIER_TABLES)
        pointer(table) == p || continue
        return Place(:data, data_name(data_number!(t, table)))
    end
    throw(NoObjectFile("the kernel has an address of unknown origin"))
end

"The number of data that go with the file, from 1."
function data_number!(t::OutsideTable, values::Vector)
    k = findfirst(x -> x === values, t.data)
    k === nothing || return k
    push!(t.data, values)
    length(t.data)
end
data_name(k) = "data_$k"

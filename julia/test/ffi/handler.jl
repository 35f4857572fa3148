# The handler as XLA calls it, with structs made by hand.

using JaxprAD: FFI
using JaxprAD.FFI: FFIApi, FFIApiVersion, FFIBuffer, FFICallFrame, FFIList, FFIAttributes,
    FFIErrorCreate, FFIMetadata, FFIExtension,
    FFIMetadataExtension
include("../support/fake_api.jl")

"The last message given to XLA's Error_Create."
const MESSAGE = Ref("")
function keep_message(arguments::Ptr{FFIErrorCreate})::Ptr{Cvoid}
    a = unsafe_load(arguments)
    MESSAGE[] = string(a.code, " ", unsafe_string(a.message))
    Ptr{Cvoid}(1)
end

"Calls a kernel's handler with buffers of these types; the error's message, or nothing."
function call_handler(handler, operands, results; stage = FFI.EXECUTE_STAGE,
    api =
    Ref(fake_api(error_create = @cfunction(keep_message, Ptr{Cvoid}, (Ptr{FFIErrorCreate},)))))
    dims = [collect(Int64, reverse(size(x))) for x in [operands; results]]
    buffers =
        [
            FFIBuffer(sizeof(FFIBuffer), C_NULL, FFI.XLA_DTYPE[eltype(x)], pointer(x), ndims(x),
                pointer(d)) for (x, d) in zip([operands; results], dims)
        ]
    items = [pointer(buffers, k) for k in eachindex(buffers)]
    types = fill(FFI.BUFFER_TYPE, length(buffers))
    list(from, n) =
        FFIList(sizeof(FFIList), C_NULL, n, pointer(types) + 4 * from, pointer(items) + 8 * from)
    n = length(operands)
    GC.@preserve dims buffers items types operands results api begin
        attributes = FFIAttributes(sizeof(FFIAttributes), C_NULL, 0, C_NULL, C_NULL, C_NULL)
        frame =
            Ref(
                FFICallFrame(sizeof(FFICallFrame), C_NULL, Base.unsafe_convert(Ptr{FFIApi}, api),
                    C_NULL, stage, list(0, n), list(n, length(results)), attributes, C_NULL)
            )
        problem = ccall(handler, Ptr{Cvoid}, (Ptr{FFICallFrame},), frame)
        problem == C_NULL ? nothing : MESSAGE[]
    end
end

# results: twice the operand
function twice(ins::Ptr{Ptr{FFIBuffer}}, outs::Ptr{Ptr{FFIBuffer}}, pool::Ptr{Cvoid})::Cint
    x, y = unsafe_load(unsafe_load(ins)), unsafe_load(unsafe_load(outs))
    for i in 1:6
        unsafe_store!(Ptr{Float32}(y.data), 2 * unsafe_load(Ptr{Float32}(x.data), i), i)
    end
    0
end
struct HandMade
    pointer::Ptr{Cvoid}
    workspace::Int
end
hand_made(workspace) =
    HandMade(@cfunction(twice, Cint, (Ptr{Ptr{FFIBuffer}}, Ptr{Ptr{FFIBuffer}}, Ptr{Cvoid})),
        workspace)
const TWICE = program("(%0: f32[2,3]) { %1: f32[2,3] = mul %0 2.0:f32 return %1 }")
const HANDLER = FFI.target(TWICE, hand_made(0)).handler
const X, Y = Float32[1 2; 3 4; 5 6], zeros(Float32, 3, 2)

@testset "a call that fits runs" begin
    @test call_handler(HANDLER, Any[X], Any[Y]) === nothing
    @test Y == 2X
end

@testset "a call that does not is refused before anything is touched" begin
    fill!(Y, 0)
    for (operands, results, message) in (
        (Any[], Any[Y], "it has 1 operands but was called with 0"),
        (Any[X, X], Any[Y], "it has 1 operands but was called with 2"),
        (Any[X], Any[Y, Y], "it has 1 results but was called with 2"),
        (Any[Float64.(X)], Any[Y], "operand 0 must be f32[2,3], got f64[2,3]"),
        (Any[permutedims(X)], Any[Y], "operand 0 must be f32[2,3], got f32[3,2]"),
        (Any[vec(X)], Any[Y], "operand 0 must be f32[2,3], got f32[6]"),
        (Any[fill(1.0f0)], Any[Y], "operand 0 must be f32[2,3], got f32[]"),
        (Any[X], Any[Int16.(Y)], "result 0 must be f32[2,3], got i16[2,3]"),
        (Any[zeros(Bool, ntuple(_ -> 1, 40))], Any[Y],
            "operand 0 must be f32[2,3], got bool[" * join(fill("1", 40), ',') * "]"))
        @test call_handler(HANDLER, operands, results) == "3 pybridge kernel f: $message"
        @test all(iszero, Y)
    end
    @test call_handler(HANDLER, Any[X], Any[Y]) === nothing
end

@testset "a message too long for its buffer is cut" begin
    # of no elements, and of 200 dimensions
    huge = reshape(Float32[], 0, fill(123456789, 200)...)
    message = call_handler(HANDLER, Any[huge], Any[Y])
    @test startswith(
        message,
        "3 pybridge kernel f: operand 0 must be f32[2,3], got " *
        "f32[123456789,"
    ) && length(message) < 1100
end

# The first number of the result: where the workspace is, which is written from end to end.
const SPACE = 10_000
function spacious(ins::Ptr{Ptr{FFIBuffer}}, outs::Ptr{Ptr{FFIBuffer}}, pool::Ptr{Cvoid})::Cint
    y, w = unsafe_load(unsafe_load(outs)), unsafe_load(unsafe_load(outs, 2))
    for i in 1:SPACE
        unsafe_store!(Ptr{UInt8}(w.data), 0xff, i)
    end
    unsafe_store!(Ptr{UInt}(y.data), UInt(w.data))
    0
end
hand_made_spacious(workspace) =
    HandMade(@cfunction(spacious, Cint, (Ptr{Ptr{FFIBuffer}}, Ptr{Ptr{FFIBuffer}}, Ptr{Cvoid})),
        workspace)
place_of_workspace(handler) = (y = zeros(Float32, 3, 2); (call_handler(handler, Any[X], Any[y]),
    reinterpret(UInt, vec(y))[1]))

@testset "a workspace is the result after the others, in memory that stays" begin
    handler = FFI.target(TWICE, hand_made_spacious(SPACE)).handler
    (problem, first_), (_, again) = place_of_workspace(handler), place_of_workspace(handler)
    @test problem === nothing && first_ == again && first_ % FFI.ALIGNMENT == 0
    other = FFI.target(TWICE, hand_made(8)).handler
    fill!(Y, 0)
    @test call_handler(other, Any[X], Any[Y]) === nothing && Y == 2X
    @test place_of_workspace(handler) == (nothing, first_)
end

@testset "a workspace for which there is no memory is an error of the call" begin
    handler = FFI.target(TWICE, hand_made_spacious(2^60)).handler
    for _ in 1:2
        @test call_handler(handler, Any[X], Any[Y]) ==
              "8 pybridge kernel f: out of memory for a workspace of $(2^60) bytes"
    end
end

@testset "other stages do nothing, and the metadata query gets the version" begin
    fill!(Y, 0)
    @test call_handler(HANDLER, Any[X], Any[Y]; stage = Cint(0)) === nothing
    @test all(iszero, Y)
    metadata =
        Ref(
            FFIMetadata(sizeof(FFIMetadata),
                FFIApiVersion(sizeof(FFIApiVersion), C_NULL, -1, -1), 7, 42)
        )
    extension =
        Ref(
            FFIMetadataExtension(
                FFIExtension(sizeof(FFIMetadataExtension), FFI.METADATA_EXTENSION,
                    C_NULL), Base.unsafe_convert(Ptr{FFIMetadata}, metadata))
        )
    empty = FFIList(sizeof(FFIList), C_NULL, 0, C_NULL, C_NULL)
    GC.@preserve metadata extension begin
        frame =
            Ref(
                FFICallFrame(sizeof(FFICallFrame),
                    Base.unsafe_convert(Ptr{FFIMetadataExtension}, extension), C_NULL, C_NULL,
                    FFI.EXECUTE_STAGE,
                    empty, empty,
                    FFIAttributes(sizeof(FFIAttributes), C_NULL, 0, C_NULL, C_NULL, C_NULL),
                    C_NULL)
            )
        @test ccall(HANDLER, Ptr{Cvoid}, (Ptr{FFICallFrame},), frame) == C_NULL
    end
    @test (metadata[].version.major, metadata[].version.minor, metadata[].traits,
        metadata[].state_type) == (0, 3, 0, 42)
end

@testset "every element type has its number and its name" begin
    shown(number) = begin
        buffer = zeros(UInt8, 64)
        t = GC.@preserve buffer FFI.put_dtype(FFI.Text(pointer(buffer), pointer(buffer) + 64),
            number)
        String(buffer[1:t.next-pointer(buffer)])
    end
    @test Set(keys(FFI.XLA_DTYPE)) == Set(last.(JaxprAD.DTYPES))
    for (name, type) in JaxprAD.DTYPES
        @test shown(FFI.XLA_DTYPE[type]) == string(name)
    end
    @test shown(33) == "XLA's type 33" && shown(-2) == "XLA's type -2" && shown(13) == "?"
end

# The memory that kernels compute in. It stays from call to call: memory that the allocator has from
# the system anew is mapped page by page when it is first touched, which for megabytes takes several
# times as long as to compute in it, and whether it is new depends on what else the process frees.

"A cache line of what threads share: who has the block, and its memory."
struct Block
    holders::Int64
    memory::Ptr{UInt8}
    bytes::Int64
    unused::NTuple{5,Int64}
end
const MEMORY, BYTES = fieldoffset(Block, 2), fieldoffset(Block, 3)
Block(holders) = Block(holders, C_NULL, 0, (0, 0, 0, 0, 0))

"One block for each call that runs at the same time; calls beyond these allocate."
const BLOCKS = 16
"Larger ones are not kept."
const LARGEST_KEPT = 2^26
"Of workspaces, and of the arrays in them: a cache line."
const ALIGNMENT = 64

mutable struct Workspaces
    blocks::NTuple{BLOCKS,Block}
end
const WORKSPACES = Workspaces(ntuple(_ -> Block(0), BLOCKS))

holders(block::Ptr{Block}) = Ptr{Int64}(block)

"The blocks of the kernels in this Julia's memory. Those in files have some of their own."
these_blocks() = Ptr{Block}(pointer_from_objref(WORKSPACES))

"""
A block of at least so many bytes, which no other call has until `give_back`; null where
there is no memory."""
function take_block(blocks::Ptr{Block}, bytes::Int64)::Ptr{Block}
    block = bytes > LARGEST_KEPT ? Ptr{Block}(C_NULL) : idle_block(blocks)
    if block == C_NULL
        block = Ptr{Block}(Libc.malloc(sizeof(Block)))
        block == C_NULL && return block
        unsafe_store!(block, Block(1))
    end
    has_room(block, bytes) && return block
    give_back(blocks, block)
    C_NULL
end

function give_back(blocks::Ptr{Block}, block::Ptr{Block})
    if blocks <= block < blocks + sizeof(Workspaces)
        fetch_add!(holders(block), -1)
    else
        Libc.free(Ptr{Cvoid}(unsafe_load(block).memory))
        Libc.free(Ptr{Cvoid}(block))
    end
    nothing
end

"The first that nobody has, so that a single thread always has the same."
function idle_block(blocks::Ptr{Block})::Ptr{Block}
    for k in 0:BLOCKS-1
        block = blocks + k * sizeof(Block)
        fetch_add!(holders(block), 1) == 0 && return block
        fetch_add!(holders(block), -1)
    end
    C_NULL
end

"Whether the block that the caller has is as large, now or from now on."
function has_room(block::Ptr{Block}, bytes::Int64)
    b = unsafe_load(block)
    # A system image has lost the address of what there was when it was made.
    b.memory != C_NULL && b.bytes >= bytes && return true
    Libc.free(Ptr{Cvoid}(b.memory))
    memory = Ptr{UInt8}(Libc.malloc(bytes % UInt))
    unsafe_store!(Ptr{Ptr{UInt8}}(block + MEMORY), memory)
    unsafe_store!(Ptr{Int64}(block + BYTES), bytes)
    memory == C_NULL && return false
    bytes >= 2LARGE_PAGE && ask_for_large_pages(UInt(memory), bytes % UInt)
    true
end

"""
The results of a call with one more, the workspace, in a block's memory: what a kernel is given. The
workspace begins at a cache line."""
function with_workspace(block::Ptr{Block}, results::FFIList)::Ptr{Ptr{FFIBuffer}}
    list = Ptr{Ptr{FFIBuffer}}(unsafe_load(block).memory)
    for i in 1:results.size
        unsafe_store!(list, unsafe_load(results.items, i), i)
    end
    buffer = Ptr{FFIBuffer}(list + sizeof(Ptr) * (results.size + 1))
    start = (UInt(buffer) + sizeof(FFIBuffer) + UInt(ALIGNMENT - 1)) & ~UInt(ALIGNMENT - 1)
    unsafe_store!(list, buffer, results.size + 1)
    unsafe_store!(buffer, FFIBuffer(sizeof(FFIBuffer), C_NULL, 0, Ptr{Cvoid}(start), 0, C_NULL))
    list
end
"The bytes of a block for a workspace of so many."
block_bytes(results::Int64, bytes::Int64) =
    sizeof(Ptr) * (results + 1) + sizeof(FFIBuffer) + ALIGNMENT + bytes

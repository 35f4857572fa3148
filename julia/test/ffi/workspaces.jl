# Blocks of memory that calls have one after the other.

using JaxprAD: FFI
using JaxprAD.FFI: Block, BLOCKS, LARGEST_KEPT, give_back, take_block

"`f` of blocks that nobody has used."
function with_blocks(f)
    own = FFI.Workspaces(ntuple(_ -> Block(0), BLOCKS))
    GC.@preserve own begin
        blocks = Ptr{Block}(pointer_from_objref(own))
        f(blocks)
        foreach(k -> Libc.free(unsafe_load(blocks, k).memory), 1:BLOCKS)
    end
end
memory(block) = unsafe_load(block).memory
holders(blocks) = [unsafe_load(blocks, k).holders for k in 1:BLOCKS]

@testset "one thread has the same memory again, or more in its place" begin
    with_blocks() do blocks
        b = take_block(blocks, 1000)
        @test b == blocks && holders(blocks) == [1; zeros(BLOCKS - 1)]
        there = memory(b)
        give_back(blocks, b)
        for bytes in (1000, 8, 1)
            b = take_block(blocks, bytes)
            @test b == blocks && memory(b) == there && unsafe_load(b).bytes == 1000
            give_back(blocks, b)
        end
        b = take_block(blocks, 5 * FFI.LARGE_PAGE)
        @test b == blocks && unsafe_load(b).bytes == 5 * FFI.LARGE_PAGE
        unsafe_store!(memory(b), 0xff, 5 * FFI.LARGE_PAGE)
        give_back(blocks, b)
        @test all(iszero, holders(blocks))
    end
end

@testset "calls at the same time have memory of their own, however many there are" begin
    with_blocks() do blocks
        held = [take_block(blocks, 100) for _ in 1:BLOCKS+3]
        @test allunique(map(memory, held)) && !(C_NULL in map(memory, held))
        @test held[1:BLOCKS] == [blocks + (k - 1) * sizeof(Block) for k in 1:BLOCKS]
        @test all(==(1), holders(blocks))
        foreach(b -> give_back(blocks, b), held)
        @test all(iszero, holders(blocks))
    end
end

@testset "large memory is not kept" begin
    with_blocks() do blocks
        b = take_block(blocks, LARGEST_KEPT + 1)
        unsafe_store!(memory(b), 0xff, LARGEST_KEPT + 1)
        give_back(blocks, b)
        @test all(iszero, holders(blocks)) && memory(blocks) == C_NULL
    end
end

@testset "where there is no memory the block is free for the next" begin
    with_blocks() do blocks
        @test take_block(blocks, 2^60) == C_NULL
        @test all(iszero, holders(blocks))
        b = take_block(blocks, 10)
        @test b == blocks
        give_back(blocks, b)
    end
end

@testset "a block whose memory a system image has lost gets new memory" begin
    with_blocks() do blocks
        unsafe_store!(blocks, Block(0, C_NULL, 1000, (0, 0, 0, 0, 0)))
        b = take_block(blocks, 10)
        @test memory(b) != C_NULL && unsafe_load(b).bytes == 10
        give_back(blocks, b)
    end
end

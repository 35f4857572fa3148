# Large results in large pages.

using JaxprAD: FFI

"""
The bytes of the process' memory map around `at` that are marked for large pages (hg), or -1 where
the system does not tell."""
function marked(at::Ptr)
    inside = false
    isfile("/proc/self/smaps") || return -1
    for line in eachline("/proc/self/smaps")
        range = match(r"^([0-9a-f]+)-([0-9a-f]+) ", line)
        range === nothing ||
            (
                inside =
                    parse(UInt, range[1]; base = 16) <= UInt(at) <
                    parse(UInt, range[2]; base = 16)
            )
        inside && startswith(line, "VmFlags:") && return Int("hg" in split(line))
    end
    -1
end

fresh_memory(bytes) =
    ccall(:mmap, Ptr{UInt8}, (Ptr{Cvoid}, Csize_t, Cint, Cint, Cint, Int64), C_NULL, bytes, 3,
        0x22, -1, 0)

function ask(pointer, bytes)
    buffer, sizes, type =
        (Ref(FFI.FFIBuffer(sizeof(FFI.FFIBuffer), C_NULL, 11, pointer, 0, C_NULL)),
            Int64[bytes], Ref(FFI.BUFFER_TYPE))
    GC.@preserve buffer sizes type begin
        items = [Base.unsafe_convert(Ptr{FFI.FFIBuffer}, buffer)]
        GC.@preserve items FFI.ask_for_large_pages(
            FFI.FFIList(sizeof(FFI.FFIList), C_NULL, 1,
                Base.unsafe_convert(Ptr{eltype(type)}, type),
                Base.unsafe_convert(Ptr{Ptr{FFI.FFIBuffer}}, items)), pointer_of(sizes), 1)
    end
end
pointer_of(x) = convert(Ptr{Int64}, pointer(x))

if Sys.islinux() && isfile("/sys/kernel/mm/transparent_hugepage/enabled")
    @testset "a large result gets large pages; a smaller one and neighbours stay as they are" begin
        for (bytes, large) in ((FFI.LARGE_RESULT, true), (FFI.LARGE_RESULT - 8, false))
            memory = fresh_memory(3 * FFI.LARGE_RESULT)
            start = memory + FFI.LARGE_RESULT
            ask(start, bytes)
            @test marked(start + bytes ÷ 2) == Int(large)
            @test marked(memory) == 0
            ccall(:munmap, Cint, (Ptr{Cvoid}, Csize_t), memory, 3 * FFI.LARGE_RESULT)
        end
    end
end

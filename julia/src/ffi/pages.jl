# Large pages. The allocator takes memory beyond 32 MiB from the system anew for each call and gives
# it back after it, so a kernel is the first to touch every page of a result. In pages of 4 KiB that
# takes several times as long as to compute what is written; Linux has pages of 2 MiB for who asks,
# where they are not the rule anyway (madvise(2), "transparent huge pages").

const LARGE_PAGE, LARGE_RESULT = 2^21, 2^25
const MADV_HUGEPAGE = Cint(14)

"Asks for large pages for the `n` results, of so many bytes each, that are large."
function ask_for_large_pages(results::FFIList, bytes::Ptr{Int64}, n::Int64)
    for i in 1:n
        size = unsafe_load(bytes, i)
        size < LARGE_RESULT ||
            ask_for_large_pages(UInt(ffi_buffer(results, i).data), size % UInt)
    end
end

"Only those that lie in the memory as a whole; a refusal does no harm."
@static if Sys.islinux()
    function ask_for_large_pages(start::UInt, size::UInt)
        low = (start + UInt(LARGE_PAGE - 1)) & ~UInt(LARGE_PAGE - 1)
        high = (start + size) & ~UInt(LARGE_PAGE - 1)
        low < high &&
            ccall(:madvise, Cint, (Ptr{Cvoid}, Csize_t, Cint), Ptr{Cvoid}(low), high - low,
                MADV_HUGEPAGE)
        nothing
    end
else
    ask_for_large_pages(start::UInt, size::UInt) = nothing
end

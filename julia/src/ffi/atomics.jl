# Counters that threads share, in memory that is not Julia's. Sequentially consistent: `Gate` relies
# on one order of all accesses.
#
# Not `Core.Intrinsics.atomic_pointermodify`: that is missing before Julia 1.7, and 1.10 boxes its
# operands and dispatches.

const LLVM_POINTER = Base.libllvm_version >= v"17" ? "ptr" : "i64*"

const FETCH_ADD = """
    %p = inttoptr i64 %0 to $LLVM_POINTER
    %old = atomicrmw add $LLVM_POINTER %p, i64 %1 seq_cst
    ret i64 %old
    """

# Adds to the number at the address and gives what was there before.
@eval fetch_add!(p::Ptr{Int64}, x::Int64) =
    Base.llvmcall($FETCH_ADD, Int64, Tuple{UInt64,Int64}, UInt64(UInt(p)), x)

atomic_load(p::Ptr{Int64}) = fetch_add!(p, 0)

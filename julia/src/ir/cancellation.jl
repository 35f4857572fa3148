# Ending a request that runs.

# A flag that another thread may raise through its address to end the running request.
const CANCEL = Ref{Int32}(0)

"The address of the Int32 that, set to 1, ends the running request with an `InterruptException`."
cancel_address() = UInt64(UInt(pointer_from_objref(CANCEL)))

"""
Ends the running request if it was cancelled. Called wherever a transform, a pass or the evaluator
takes a step; functions of the user's may call it in their loops. Not inlined, since a compiler may
take the load, of what nobody stores, out of a loop."""
@noinline check_cancelled() = CANCEL[] == 0 ? nothing : throw(InterruptException())

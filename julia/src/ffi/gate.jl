# The end of the process: kernels that run finish before Julia's exit hooks are done, and none begins after.

mutable struct Gate
    running::Int64
    closed::Int64
end
const GATE = Gate(0, 0)
const RUNNING, CLOSED = fieldoffset(Gate, 1), fieldoffset(Gate, 2)
gate(offset::UInt) = Ptr{Int64}(pointer_from_objref(GATE) + offset)

"Whether a kernel may run now; then `leave_gate` must follow."
function enter_gate()
    # Counted before looking: whoever closes the gate sets the mark before counting.
    fetch_add!(gate(RUNNING), 1)
    atomic_load(gate(CLOSED)) == 0 && return true
    leave_gate()
    false
end
leave_gate() = (fetch_add!(gate(RUNNING), -1); nothing)

"Lets no kernel in any more and waits, for so many seconds at most, until none runs."
function close_gate(patience = 10.0)
    fetch_add!(gate(CLOSED), 1)
    deadline = time() + patience
    while atomic_load(gate(RUNNING)) > 0 && time() < deadline
        Libc.systemsleep(0.001)
        gc_safepoint()
    end
end

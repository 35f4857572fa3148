# The end of the process: kernels that run finish before Julia's exit hooks are done,
# and none begins after.

mutable struct Gate
    running::Int64
    closed::Int64
end
const GATE = Gate(0, 0)
const RUNNING, CLOSED = fieldoffset(Gate, 1), fieldoffset(Gate, 2)

"The gate of the kernels in this Julia's memory. Those in files have one of their own."
this_gate() = Ptr{Gate}(pointer_from_objref(GATE))
counter(gate::Ptr{Gate}, offset::UInt) = Ptr{Int64}(gate + offset)

"Whether a kernel may run now; then `leave_gate` must follow."
function enter_gate(gate::Ptr{Gate} = this_gate())
    # Counted before looking: who closes the gate sets the mark before counting.
    fetch_add!(counter(gate, RUNNING), 1)
    atomic_load(counter(gate, CLOSED)) == 0 && return true
    leave_gate(gate)
    false
end
leave_gate(gate::Ptr{Gate} = this_gate()) = (fetch_add!(counter(gate, RUNNING), -1); nothing)

"As in a new process."
open_gate() = (GATE.running = GATE.closed = 0; nothing)

"Lets no kernel in any more, and says how many run."
function shut_gate(gate::Ptr{Gate})
    fetch_add!(counter(gate, CLOSED), 1)
    atomic_load(counter(gate, RUNNING))
end

"Lets no kernel in any more and waits, for so many seconds at most, until none runs."
function close_gate(patience = 10.0)
    shut_gate(this_gate())
    deadline = time() + patience
    while atomic_load(counter(this_gate(), RUNNING)) > 0 && time() < deadline
        Libc.systemsleep(0.001)
        gc_safepoint()
    end
end

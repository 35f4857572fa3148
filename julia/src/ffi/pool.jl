"""
    parallel_for(pool, chunks, body, data, falling)

Runs the C function `body(k::Int, data::Ptr{Cvoid})::Cvoid` for each `k` in `0:chunks-1`, in any
order, on the calling thread and on XLA's own pool; returns when all are done. `pool` is what the
kernel was given. Without a pool (`C_NULL`, or one with a single thread) it is a loop, from the last
to the first if `falling` is 1, else from the first to the last.

Generated code calls this function directly, as Julia: with arguments of exactly these types that
compiles to a plain call of native code. `body` is a `@cfunction` pointer made when the kernel is
compiled. Nothing here touches Julia's heap or throws.

At most as many threads work as XLA's pool has, the caller among them: XLA bounds it by the number
of cores. More chunks than threads even out unequal ones. The caller begins with the first chunk,
the others with the last: what a chunk reads is then likely in the cache of the core that had the
same chunk of the loop before.

**Why it cannot deadlock.** Threads claim chunks from a counter. The caller claims like all others,
and afterwards waits only for chunks that are claimed, which run already; it never waits for a task
to start, so it does not matter if every thread of the pool is itself waiting in here. A task that
starts late finds nothing to claim. What it looks at is therefore not the caller's but a block of
its own, which the last to leave frees.
"""
@noinline parallel_for(pool::Ptr{Cvoid}, chunks::Int, body::Ptr{Cvoid}, data::Ptr{Cvoid},
    falling::Int) =
    share_out(pool, chunks, body, data, falling, pool_task_pointer(), gc_safepoint)

"""
With the pointer to `pool_task`, and what to do while waiting: outside of a Julia process there
are no safepoints."""
function share_out(pool::Ptr{Cvoid}, chunks::Int, body::Ptr{Cvoid}, data::Ptr{Cvoid},
    falling::Int, task::Ptr{Cvoid}, safepoint::S) where {S}
    helpers = chunks > 1 ? min(chunks, pool_size(pool)) - 1 : 0
    helpers > 0 || return serial_for(chunks, body, data, falling)
    team = Ptr{Team}(Libc.malloc(sizeof(Team)))
    team == C_NULL && return serial_for(chunks, body, data, falling)
    unsafe_store!(team, Team(0, 0, 0, helpers + 1, chunks, body, data))
    started = schedule(pool, team, helpers, task)
    release!(team, helpers - started)
    work_from_front(team)
    await(team, chunks, safepoint)
    release!(team, 1)
    nothing
end

function serial_for(chunks::Int, body::Ptr{Cvoid}, data::Ptr{Cvoid}, falling::Int)
    for k in 0:chunks-1
        call_body(body, falling == 1 ? chunks - 1 - k : k, data)
    end
end

"What the threads of one `parallel_for` share."
struct Team
    claimed::Int64
    taken::Int64        # of the claimed, those by others than the caller
    finished::Int64
    holders::Int64      # the caller, and the tasks that have not ended
    chunks::Int64
    body::Ptr{Cvoid}
    data::Ptr{Cvoid}
end
# Where the counters are; computed here, because some versions do not fold `fieldoffset`.
const CLAIMED, TAKEN, FINISHED, HOLDERS = map(k -> fieldoffset(Team, k), (1, 2, 3, 4))
counter(team::Ptr{Team}, offset::UInt) = Ptr{Int64}(team + offset)

# No more are claimed than there are chunks, so that those from the front and those from the back
# do not meet.
function work_from_front(team::Ptr{Team})
    t = unsafe_load(team)
    k = 0
    while fetch_add!(counter(team, CLAIMED), 1) < t.chunks
        finish(team, t, k)
        k += 1
    end
end
function work_from_back(team::Ptr{Team})
    t = unsafe_load(team)
    while fetch_add!(counter(team, CLAIMED), 1) < t.chunks
        finish(team, t, t.chunks - 1 - fetch_add!(counter(team, TAKEN), 1))
    end
end
function finish(team::Ptr{Team}, t::Team, k::Int)
    call_body(t.body, k, t.data)
    fetch_add!(counter(team, FINISHED), 1)
end

"Waits for the chunks that others have claimed."
function await(team::Ptr{Team}, chunks::Int, safepoint::S) where {S}
    spins = 0
    while atomic_load(counter(team, FINISHED)) < chunks
        # Soon done, as a rule; but the thread in question may be waiting for this core.
        (spins += 1) < 200 ? pause() : yield_core()
        safepoint()
    end
end

function release!(team::Ptr{Team}, count::Int)
    fetch_add!(counter(team, HOLDERS), -count) == count && Libc.free(Ptr{Cvoid}(team))
    nothing
end

"What XLA's pool runs."
function pool_task(team::Ptr{Team})::Cvoid
    work_from_back(team)
    release!(team, 1)
    nothing
end

pause() = ccall(:jl_cpu_pause, Cvoid, ())
yield_core() = Sys.isunix() ? (ccall(:sched_yield, Cint, ()); nothing) : pause()

# Since 1.9 the threads of XLA that enter Julia are Julia's while they are inside, and a collection
# waits for each to reach a safepoint, which functions have at their beginning. Who waits here for a
# thread stopped in one must stop as well. Older ones have no such duty, and on a foreign thread no
# safepoint.
gc_safepoint() = VERSION >= v"1.9" ? GC.safepoint() : nothing
no_safepoint() = nothing

# XLA's side. `pool` is the frame of the call.

function pool_size(pool::Ptr{Cvoid})::Int
    pool == C_NULL && return 1
    frame = unsafe_load(Ptr{FFICallFrame}(pool))
    offers_pool(frame.api) || return 1
    size = sizeof(FFINumThreads)
    arguments = Libc.malloc(size + sizeof(Int64))
    arguments == C_NULL && return 1
    count = Ptr{Int64}(arguments + size)
    unsafe_store!(count, 1)
    unsafe_store!(Ptr{FFINumThreads}(arguments), FFINumThreads(size, C_NULL, frame.context, count))
    problem = call_api(unsafe_load(frame.api).num_threads, arguments)
    threads = problem == C_NULL ? unsafe_load(count) : 1
    Libc.free(arguments)
    destroy_error(frame.api, problem)
    threads
end

offers_pool(api::Ptr{FFIApi}) =
    api != C_NULL && unsafe_load(api).struct_size >= sizeof(FFIApi) &&
    unsafe_load(api).num_threads != C_NULL &&
    unsafe_load(api).schedule != C_NULL

"Gives XLA's pool that many tasks for the team, and says how many it took."
function schedule(pool::Ptr{Cvoid}, team::Ptr{Team}, count::Int, task::Ptr{Cvoid})::Int
    frame = unsafe_load(Ptr{FFICallFrame}(pool))
    size = sizeof(FFISchedule)
    arguments = Libc.malloc(size)
    arguments == C_NULL && return 0
    unsafe_store!(Ptr{FFISchedule}(arguments), FFISchedule(size, C_NULL, frame.context, task, team))
    taken = 0
    while taken < count
        problem = call_api(unsafe_load(frame.api).schedule, arguments)
        destroy_error(frame.api, problem)
        problem == C_NULL || break
        taken += 1
    end
    Libc.free(arguments)
    taken
end

# Not a global: a pointer kept in a precompiled package would be that of another process.
pool_task_pointer() = @cfunction(pool_task, Cvoid, (Ptr{Team},))

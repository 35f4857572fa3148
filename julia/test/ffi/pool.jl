# parallel_for on a pool of this process's: C functions with the signatures of XLA's that run tasks
# at once, later, never, or on threads.

using JaxprAD: FFI, parallel_for
using JaxprAD.FFI: FFIApi, FFINumThreads, FFISchedule, FFICallFrame, FFIErrorDestroy
include("../support/fake_api.jl")

const TASKS = FFISchedule[]
const THREADS, FAILS_AFTER, DESTROYED = Ref(4), Ref(typemax(Int)), Ref(0)
told_threads(a::Ptr{FFINumThreads})::Ptr{Cvoid} =
    (unsafe_store!(unsafe_load(a).count, THREADS[]); C_NULL)
function queued(a::Ptr{FFISchedule})::Ptr{Cvoid}
    length(TASKS) >= FAILS_AFTER[] && return Ptr{Cvoid}(1)
    push!(TASKS, unsafe_load(a))
    C_NULL
end
at_once(a::Ptr{FFISchedule})::Ptr{Cvoid} = (run_task(unsafe_load(a)); C_NULL)
destroyed(a::Ptr{FFIErrorDestroy})::Cvoid = (DESTROYED[] += 1; nothing)
run_task(s) = ccall(s.task, Cvoid, (Ptr{Cvoid},), s.data)
run_tasks() = (foreach(run_task, TASKS); empty!(TASKS))

count_visit(k::Int, counts::Ptr{Int64})::Cvoid = (FFI.fetch_add!(counts + 8k, 1); nothing)
const BODY = @cfunction(count_visit, Cvoid, (Int, Ptr{Int64}))

"How often each chunk ran, on a pool that schedules by this function."
function visits(chunks, schedule)
    counts = zeros(Int64, chunks)
    api =
        Ref(
            fake_api(schedule = schedule,
                num_threads = @cfunction(told_threads, Ptr{Cvoid}, (Ptr{FFINumThreads},)),
                error_destroy = @cfunction(destroyed, Cvoid, (Ptr{FFIErrorDestroy},)))
        )
    list = FFI.FFIList(0, C_NULL, 0, C_NULL, C_NULL)
    GC.@preserve counts api begin
        frame =
            Ref(
                FFICallFrame(sizeof(FFICallFrame), C_NULL, Base.unsafe_convert(Ptr{FFIApi}, api),
                    C_NULL, FFI.EXECUTE_STAGE, list, list,
                    FFI.FFIAttributes(0, C_NULL, 0, C_NULL, C_NULL, C_NULL), C_NULL)
            )
        GC.@preserve frame parallel_for(Ptr{Cvoid}(Base.unsafe_convert(Ptr{FFICallFrame}, frame)),
            chunks, BODY, Ptr{Cvoid}(pointer(counts)), 0)
    end
    counts
end
queue() = @cfunction(queued, Ptr{Cvoid}, (Ptr{FFISchedule},))

@testset "each chunk runs once, without a pool" begin
    counts = zeros(Int64, 5)
    GC.@preserve counts parallel_for(C_NULL, 5, BODY, Ptr{Cvoid}(pointer(counts)), 0)
    @test counts == ones(5)
end
const VISITED = Int[]
visit(k::Int, data::Ptr{Cvoid})::Cvoid = (push!(VISITED, k); nothing)
@testset "in order where there is one thread" begin
    for (falling, order) in ((0, 0:4), (1, 4:-1:0))
        empty!(VISITED)
        parallel_for(C_NULL, 5, @cfunction(visit, Cvoid, (Int, Ptr{Cvoid})), C_NULL, falling)
        @test VISITED == order
    end
end
@testset "tasks that come too late, or run in the caller's place, do no harm" begin
    for chunks in (0, 1, 2, 3, 100)
        @test visits(chunks, queue()) == ones(chunks)       # returns, although no task has run
        @test length(TASKS) == max(0, min(chunks, THREADS[]) - 1)
        run_tasks()
        @test visits(chunks, @cfunction(at_once, Ptr{Cvoid}, (Ptr{FFISchedule},))) == ones(chunks)
    end
end
@testset "a pool that takes no tasks, or has one thread" begin
    FAILS_AFTER[] = 1
    @test visits(10, queue()) == ones(10) && length(TASKS) == 1 && DESTROYED[] == 1
    run_tasks()
    FAILS_AFTER[], THREADS[] = typemax(Int), 1
    @test visits(10, queue()) == ones(10) && isempty(TASKS)
    THREADS[] = 4
end
@testset "an XLA without a pool" begin
    @test visits(10, C_NULL) == ones(10) && isempty(TASKS)
end

@testset "the gate" begin
    @test FFI.enter_gate()
    FFI.leave_gate()
    # in another process, since a closed gate stays closed
    code = """
        push!(LOAD_PATH, $(repr(joinpath(@__DIR__, "..", "..")))); using JaxprAD: FFI
        FFI.enter_gate() || exit(3)
        t = time(); FFI.close_gate(0.3); (0.3 < time() - t < 5 && !FFI.enter_gate()) || exit(4)
        FFI.leave_gate(); t = time(); FFI.close_gate(60); time() - t < 5 || exit(5)
        """
    @test success(pipeline(`$(Base.julia_cmd()) -e $code`; stderr = stderr))
end

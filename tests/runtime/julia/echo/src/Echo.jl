# A stand-in for JaxprAD with the same two functions, small enough to load in a moment, whose
# commands are the situations that the runtime has to survive.
module Echo

# Leaves a trace of each precompilation for the tests that count them.
if ccall(:jl_generating_output, Cint, ()) != 0 && haskey(ENV, "ECHO_PRECOMPILED")
    open(io -> println(io, "precompiled"), ENV["ECHO_PRECOMPILED"], "a")
end

const CANCEL = Ref{Int32}(0)

cancel_address() = UInt64(UInt(pointer_from_objref(CANCEL)))

# Whatever stores through the address is outside Julia, so the load must not be
# hoisted out of a loop.
cancelled() = unsafe_load(Ptr{Int32}(pointer_from_objref(CANCEL))) != 0

function serve(message::String)::String
    CANCEL[] = 0
    try
        line, body = occursin('\n', message) ? split(message, '\n'; limit = 2) : (message, "")
        words = split(line, ' ')
        "ok\n" * answer(Val(Symbol(words[1])), words[2:end], String(body))
    catch problem
        trace = sprint(Base.show_backtrace, catch_backtrace())
        string("error\n", nameof(typeof(problem)), "\n", sprint(showerror, problem),
            "\n-----\n", trace)
    end
end

answer(::Val{:echo}, arguments, body) = body
answer(::Val{:arguments}, arguments, body) = join(arguments, ',')
answer(::Val{:version}, arguments, body) = string(VERSION)
answer(::Val{:throw}, arguments, body) = throw(ArgumentError(body))
answer(::Val{:overflow}, arguments, body) = string(deeper(1))
answer(::Val{:collect}, arguments, body) =
    (GC.gc(); string(sum(length(rand(100)) for _ in 1:10_000)))
answer(::Val{:paths}, arguments, body) = join([first(DEPOT_PATH), Base.active_project()], '\n')
answer(::Val{:atexit}, arguments, body) = (atexit(() -> write(body, "Julia ended")); "")

@noinline deeper(n) = n < 0 ? 0 : 1 + deeper(n + 1) * 2

"Spin, or sleep, until cancelled; an argument bounds the seconds."
function answer(::Val{:loop}, arguments, body)
    stop = time() + parse(Float64, first(arguments))
    while time() < stop
        cancelled() && throw(InterruptException())
        sleep(0.001)
    end
    "ended by itself"
end

"Never looks whether it was cancelled."
function answer(::Val{:spin}, arguments, body)
    stop = time() + parse(Float64, first(arguments))
    while time() < stop
    end
    "ended by itself"
end

# A kernel as XLA's threads would call it: no exceptions leave it, and where foreign threads cannot
# use Julia's heap, before 1.9, it does not either.
const FOREIGN_HEAP = VERSION >= v"1.9"

function kernel(data::Ptr{Float64}, n::Int64)::Int32
    if FOREIGN_HEAP
        sum(length(rand(10)) for _ in 1:1000) == 10_000 || return Int32(1)
        rand() < 0.01 && GC.gc(false)
    end
    for i in 1:n
        x = unsafe_load(data, i)
        unsafe_store!(data, muladd(x, x, -0.25), i)
    end
    Int32(0)
end
answer(::Val{:kernel}, arguments, body) =
    string(UInt(@cfunction(kernel, Int32, (Ptr{Float64}, Int64))))

end

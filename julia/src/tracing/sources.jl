# Which line of the user's code an operation comes from.

const OWN_SOURCES = dirname(@__DIR__)

"Whether a frame of a stack is of code outside of JaxprAD, Julia and its standard library."
function isuser(frame)
    file = string(frame.file)
    # Base's files, and code without a file, begin with a dot
    basename(file) == Functions.CODE_FILE && return true
    !frame.from_c && frame.line > 0 && !startswith(file, OWN_SOURCES) && !startswith(file, "./") &&
        !occursin("/stdlib/v", file) && !(file in ("none", "boot.jl", "client.jl", "loading.jl"))
end

"The position of a frame as sources of equations have it: `model.jl:12 (f)`."
function position(frame)
    place = string(basename(string(frame.file)), ":", frame.line)
    # names of anonymous functions say nothing
    startswith(string(frame.func), "#") ? place : "$place ($(frame.func))"
end

"""
    user_line() -> String

The innermost position of the user's code in the stack, or nothing but `""`."""
function user_line()
    source = HAS_UNWINDER ? user_line_of(innermost_frames()) : nothing
    source === nothing ? user_line(backtrace()) : source
end
"The same of a stack that is given."
user_line(trace::AbstractVector) = something(user_line_of(trace), "")

"Nothing where the stack has neither code of the user's nor a request."
function user_line_of(trace)
    for address in trace
        source = source_at(address)
        source == REQUEST && return ""
        isempty(source) || return source
    end
    nothing
end

"""
The position in the user's code of what is at an address, `REQUEST`, or nothing but `""`. Code
stays where it is as long as the process lives, and in a system image Julia takes milliseconds to
find it."""
source_at(address::Ptr{Cvoid}) =
    lock(() -> get!(() -> source_found(address), SOURCES, address), SOURCES_LOCK)
source_at(interpreted) = source_found(interpreted)
const SOURCES = Dict{Ptr{Cvoid},String}()
const SOURCES_LOCK = ReentrantLock()

function source_found(address)
    frames = StackTraces.lookup(address)
    k = findfirst(isuser, frames)
    k !== nothing ? position(frames[k]) : any(isrequest, frames) ? REQUEST : ""
end

const NEAR = 24
"The library by which Julia unwinds stacks on Linux, and whether it is there."
const UNWINDER = "libunwind.so.8"
const HAS_UNWINDER = any(path -> basename(path) == UNWINDER, Libdl.dllist())

"""
The innermost frames of the stack, by the unwinder itself: `backtrace` goes through all of them, and
takes a hundred times as long. Code that is interpreted is not among them."""
function innermost_frames()
    frames = Vector{Ptr{Cvoid}}(undef, NEAR)
    n = ccall((:unw_backtrace, UNWINDER), Cint, (Ptr{Ptr{Cvoid}}, Cint), frames, NEAR)
    # these are where calls return to, and those of Julia within the calls
    resize!(frames, n) .- 1
end

# Callers of `serve` have no line in the code that is traced for them.
const REQUEST = "serve"
isrequest(frame) = frame.func === :serve && startswith(string(frame.file), OWN_SOURCES)

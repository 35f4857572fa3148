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
    user_line(known = Dict()) -> String

The innermost position of the user's code in the stack, or nothing but `""`. `known` keeps what is
found out about addresses."""
function user_line(known = Dict{Any,String}())
    source = HAS_UNWINDER ? user_line_of(innermost_frames(), known) : nothing
    source === nothing ? user_line(backtrace(), known) : source
end
"The same of a stack that is given."
user_line(trace::AbstractVector, known = Dict{Any,String}()) =
    something(user_line_of(trace, known), "")

"Nothing where the stack has neither code of the user's nor a request."
function user_line_of(trace, known)
    for address in trace
        source = get!(known, address) do
            frames = StackTraces.lookup(address)
            k = findfirst(isuser, frames)
            k !== nothing ? position(frames[k]) : any(isrequest, frames) ? REQUEST : ""
        end
        source == REQUEST && return ""
        isempty(source) || return source
    end
    nothing
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

# Whoever calls `serve` has no line in the code that is traced for them.
const REQUEST = "serve"
isrequest(frame) = frame.func === :serve && startswith(string(frame.file), OWN_SOURCES)

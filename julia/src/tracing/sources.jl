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
    user_line(trace = backtrace(), known = Dict()) -> String

The innermost position of the user's code in a stack, or nothing but `""`. `known` keeps what is
found out about addresses."""
function user_line(trace = backtrace(), known = Dict{Any,String}())
    for address in trace
        source = get!(known, address) do
            frames = StackTraces.lookup(address)
            k = findfirst(isuser, frames)
            k !== nothing ? position(frames[k]) : any(isrequest, frames) ? REQUEST : ""
        end
        source == REQUEST && return ""
        isempty(source) || return source
    end
    ""
end

# Whoever calls `serve` has no line in the code that is traced for them.
const REQUEST = "serve"
isrequest(frame) = frame.func === :serve && startswith(string(frame.file), OWN_SOURCES)

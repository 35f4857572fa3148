"""
Base of the errors JaxprAD raises on purpose; their names are those of pybridge's
Python exceptions."""
abstract type JaxprADError <: Exception end

"Text that is not a Program, with its position."
struct ProgramSyntaxError <: JaxprADError
    message::String
    line::Int
    column::Int
end

"Text of a newer version than this reader's."
struct ProgramVersionError <: JaxprADError
    message::String
end

"A Program that parses but is ill-typed."
struct ProgramTypeError <: JaxprADError
    message::String
end

"A primitive that JaxprAD, or the transform at hand, lacks."
struct UnsupportedPrimitive <: JaxprADError
    primitive::String
    message::String
    source::String
end

"""
Native code that is none, since it calls what no thread of XLA's may, with the equation that it is
of, if one: JaxprAD has made wrong code, and another way has to be taken."""
struct KernelRefused <: JaxprADError
    primitive::String
    message::String
    source::String
end

"A derivative that does not exist: integer inputs, reverse mode through an unbounded loop."
struct NotDifferentiable <: JaxprADError
    message::String
    source::String
end

at_source(source) = isempty(source) ? "" : " (at $source)"

Base.showerror(io::IO, e::ProgramSyntaxError) =
    print(io, "line $(e.line), column $(e.column): $(e.message)")
Base.showerror(io::IO, e::ProgramVersionError) = print(io, e.message)
Base.showerror(io::IO, e::ProgramTypeError) = print(io, e.message)
Base.showerror(io::IO, e::Union{UnsupportedPrimitive,KernelRefused}) =
    print(io, "$(e.primitive): $(e.message)", at_source(e.source))
Base.showerror(io::IO, e::NotDifferentiable) = print(io, e.message, at_source(e.source))

"What Python reads a JuliaError from: kind, message and stack."
failure_text(e, trace) =
    string(nameof(typeof(e)), "\n", sprint(showerror, e), "\n-----\n", trace_text(trace))

const SHOWN_FRAMES = 100
"""
A stack as text. Of an endless recursion, whose frames take Julia ten seconds to look up, the
innermost ones and the outermost that Julia keeps."""
function trace_text(trace)
    left_out = length(trace) - 2SHOWN_FRAMES
    left_out <= 0 && return sprint(Base.show_backtrace, trace)
    string(sprint(Base.show_backtrace, trace[1:SHOWN_FRAMES]), "\n... $left_out frames ...",
        sprint(Base.show_backtrace, trace[end-SHOWN_FRAMES+1:end]))
end

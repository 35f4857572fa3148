# What can be wrong with code that is traced.

"Control flow, `if`, `&&` or the length of a loop, that a traced value decides."
struct TracedControlFlow <: JaxprADError
    message::String
    source::String
end

"A traced value where Julia needs a number that is known, or in an array that cannot hold one."
struct TracedConversion <: JaxprADError
    message::String
    source::String
end

"A traced value that is used where it is not known: after its trace, or outside of it."
struct EscapedTracer <: JaxprADError
    message::String
    source::String
end

"Code that tracing does not understand, or an exception of the traced code, which is `cause`."
struct TracingFailed <: JaxprADError
    message::String
    source::String
    cause::Any
end

"An array that a compiled function has taken as a constant, and that has changed since."
struct CapturedArrayChanged <: JaxprADError
    message::String
    source::String
end

const TracingError =
    Union{TracedControlFlow,TracedConversion,EscapedTracer,TracingFailed,CapturedArrayChanged}
Base.showerror(io::IO, e::TracingError) = print(io, e.message, at_source(e.source))

"Ends the trace: what the code at the user's line asks for cannot be traced."
untraceable(message) = throw(TracingFailed(message, user_line(), nothing))

"The exception that a trace ends with, for one that the traced code has thrown."
named_error(e::Union{JaxprADError,InterruptException}, source) = e
named_error(e, source) = TracingFailed(sprint(showerror, e), source, e)
named_error(e::Union{ProgramTypeError,UnsupportedPrimitive}, source) =
    TracingFailed(sprint(showerror, e), source, e)
function named_error(e::MethodError, source)
    f, given = called(e.f, e.args isa Tuple ? e.args : ())
    any(holds_traced, given) || return TracingFailed(sprint(showerror, e), source, e)
    name_ = f isa Function ? string(parentmodule(f), '.', nameof(f)) : string(f)
    TracingFailed("`$name_` is not known for traced values, here for " *
                  "$(join(map(argument_text, given), ", ")); docs/trace.md has what is", source, e)
end
"The function that was called, and its arguments by place: those by name come first, and a marker."
called(f, given) =
    length(given) > 1 && given[1] isa NamedTuple && given[2] isa Function ?
    (given[2], given[3:end]) : (f, given)
argument_text(x) = istraced(x) ? "a $x" : "a $(typeof(x))"
named_error(e::StackOverflowError, source) = TracingFailed(
    "a function calls itself without end (StackOverflowError): where a traced value is to end " *
    "it, `while_loop` repeats", source, e)
function named_error(e::TypeError, source)
    e.expected === Bool && e.got isa TracedNumber ||
        return TracingFailed(sprint(showerror, e), source, e)
    TracedControlFlow(
        "the value of a condition is not known while a function is traced: choose between values " *
        "with `select(condition, a, b)`, between computations with `JaxprAD.cond`, and repeat " *
        "with `while_loop` or `scan`", source)
end

conversion_error(x, T) =
    throw(
        TracedConversion(
            "a traced number cannot become a $T: its value is not known while a function is " *
            "traced. An array that is to hold it is made by `similar(x)` or " *
            "`zeros(eltype(x), n)` of a traced x, a struct that is to hold it has fields of a " *
            "type parameter", user_line())
    )

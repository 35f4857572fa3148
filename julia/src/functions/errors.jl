# What can be wrong with a user's function, its arguments or its results.

"A function, file or package that is not there."
struct FunctionNotFound <: JaxprADError
    message::String
end

"A result of another structure, shape or dtype than promised."
struct ResultMismatch <: JaxprADError
    message::String
end

"A write to an argument: those are JAX's arrays, which never change."
struct InputMutated <: JaxprADError
    message::String
end

"A derivative for which there is neither a rule nor Enzyme.jl."
struct EngineUnavailable <: JaxprADError
    message::String
end

"What Enzyme.jl says of code that it cannot differentiate."
struct EnzymeFailed <: JaxprADError
    message::String
end
EnzymeFailed(e::Exception) = EnzymeFailed(string(nameof(typeof(e)), ": ", sprint(showerror, e)))

"""
Runs work of Enzyme's. Of other exceptions, those of the function that it differentiates, `others`
says what they become."""
function by_enzyme(work; others = identity)
    try
        work()
    catch e
        nameof(Base.moduleroot(parentmodule(typeof(e)))) === :Enzyme && rethrow(EnzymeFailed(e))
        rethrow(e isa JaxprADError ? e : others(e))
    end
end

Base.showerror(io::IO, e::FunctionNotFound) = print(io, e.message)
Base.showerror(io::IO, e::ResultMismatch) = print(io, e.message)
Base.showerror(io::IO, e::InputMutated) = print(io, e.message)
Base.showerror(io::IO, e::EngineUnavailable) = print(io, e.message)
Base.showerror(io::IO, e::EnzymeFailed) = print(io, e.message)

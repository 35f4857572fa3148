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

Base.showerror(io::IO, e::FunctionNotFound) = print(io, e.message)
Base.showerror(io::IO, e::ResultMismatch) = print(io, e.message)
Base.showerror(io::IO, e::InputMutated) = print(io, e.message)
Base.showerror(io::IO, e::EngineUnavailable) = print(io, e.message)

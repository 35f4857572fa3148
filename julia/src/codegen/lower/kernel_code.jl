# A kernel between the stages that make it.

"""
`code` of the kernel itself, `definitions` of the functions that it calls, and how many `slots` of
the workspace hold variables that go from function to function.
"""
struct KernelCode
    name::Symbol
    generator::Generator
    code::Vector{Any}
    definitions::Vector{Any}
    slots::Int
end
with(k::KernelCode; code = k.code, slots = k.slots) =
    KernelCode(k.name, k.generator, code, k.definitions, slots)

const ARGUMENTS = (:operands => Ptr{Ptr{Cvoid}}, :results => Ptr{Ptr{Cvoid}}, :pool => Ptr{Cvoid})
# Variables go from function to function in slots of the workspace.
const CONTEXT, SLOT = :context, 16

"""
In code: the address of one of the kernel's functions, `(Int, Ptr{UInt8}) -> Cvoid`,
which threads run."""
struct FunctionPointer
    name::Symbol
end

definition_name(ex::Expr) =
    ex.head === :call ? ex.args[1] : definition_name(definition_of(ex).args[1])
"A definition without the macros around it."
definition_of(ex::Expr) = ex.head === :macrocall ? definition_of(ex.args[end]) : ex

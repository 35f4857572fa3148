# From definitions to machine code.

"Where compiled kernels hang."
module Kernels
Base.Experimental.@optlevel 3
"Parts of long code that have no loops: they gain little from what LLVM would take most time for."
module Straight
Base.Experimental.@optlevel 1
end
end
function define(definition, straight)
    f = Core.eval(straight ? Kernels.Straight : Kernels, in_process(definition))
    straight && Core.eval(Kernels, :(const $(nameof(f)) = $f))
    f
end
holds_loop(ex) = false
holds_loop(ex::Expr) = ex.head === :while || any(holds_loop, ex.args)

"The code with addresses in this process; the functions in question are defined before it."
in_process(x) = x
in_process(ex::Expr) = Expr(ex.head, Any[in_process(a) for a in ex.args]...)
in_process(f::FunctionPointer) =
    Core.eval(Kernels, :(@cfunction($(f.name), Cvoid, (Int, Ptr{UInt8}))))

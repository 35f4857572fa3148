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
    f = Core.eval(straight ? Kernels.Straight : Kernels, definition)
    straight && Core.eval(Kernels, :(const $(nameof(f)) = $f))
    # One by one: LLVM takes several times as long for all of them in one module.
    f isa Function && precompile(f, Tuple(fieldtypes(first(methods(f)).sig)[2:end]))
    f
end
holds_loop(ex) = false
holds_loop(ex::Expr) = ex.head in (:while, :toplevel) || any(holds_loop, ex.args)

optimize(p::Program) = dce(p)

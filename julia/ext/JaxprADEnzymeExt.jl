"""
Derivatives by Enzyme.jl, one file a topic. Loaded where Enzyme is, the first time that
one is asked for."""
module JaxprADEnzymeExt

using Enzyme: Enzyme, BatchDuplicated, Const, Duplicated, Forward, Reverse, autodiff

include("functions.jl")
include("refusals.jl")
include("programs.jl")
include("enzyme_rules.jl")
include("ruled_functions.jl")

end

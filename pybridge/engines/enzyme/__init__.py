"""Engine `enzyme`: Programs differentiated by Enzyme.jl."""

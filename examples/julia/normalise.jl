# The example of the Enzyme paper (Moses & Churavy, NeurIPS 2020, figure 1): `norm` stands inside the loop. The compiler hoists it out, so
# that n steps are left; differentiated before that, as an AD of source code or of operations does, n norms of n elements each are.

norm(x) = (s = 0.0; for v in x; s += v * v; end; sqrt(s))

function normalise!(out, x)
    for i in eachindex(x)
        out[i] = x[i] / norm(x)
    end
    nothing
end

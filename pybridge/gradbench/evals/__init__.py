"""GradBench's evals, a module each, of their names.

Each has `functions`, which takes `pb.bridge` with an engine chosen and returns what the eval may ask for. An
eval is written in JAX from its published description, in the folder `evals` of GradBench.
"""

NAMES = (
    "ba",
    "det",
    "gmm",
    "hello",
    "ht",
    "kmeans",
    "llsq",
    "lse",
    "lstm",
    "ode",
    "particle",
    "saddle",
)

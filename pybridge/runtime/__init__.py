"""Julia, what is asked of it, and the JAX primitive that runs Programs."""

"""Functions of other systems as JAX functions with the derivatives that those systems make of them."""

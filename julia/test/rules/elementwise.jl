# Elementwise primitives, one line each.

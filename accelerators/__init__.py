"""Whether exported derivatives are right on a GPU or TPU, and as fast as JAX's own there.

`python -m accelerators write FOLDER` exports them here, with what the CPU says is right. `python
accelerators/run.py FOLDER results.json` runs them on whatever device JAX has there, which needs JAX alone.
`python -m accelerators page results.json` writes the table in docs/accelerators.md.
"""

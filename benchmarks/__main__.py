"""`python -m benchmarks`, the same as `pybridge bench`."""

import typer

from pybridge.benchmarking import bench

typer.run(bench)

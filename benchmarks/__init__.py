"""Speed of native kernels compared with JAX: `make bench`, `pybridge bench`, `python -m benchmarks`.

`rows/` holds the programs, a file a family; `worker.py` measures one of them in a process of its own;
`runner.py` starts those processes; `report.py`, `page.py` and `picture.py` show what came out.
"""

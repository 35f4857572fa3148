"""Whether `execute="auto"` chooses well, primitive by primitive: `python -m benchmarks.sweep`.

`families.py` has the programs, `measuring.py` times one of them in a process of its own, `measured.py` says
what the measurements mean for the cost model, and `__main__.py` is the command.
"""

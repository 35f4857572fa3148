"""Where the time of `make test` goes: recorded while tests run, printed by `python -m tests.times`."""

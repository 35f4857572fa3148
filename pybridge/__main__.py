"""`python -m pybridge`, the same as the command `pybridge`."""

from .cli.app import app

app(prog_name="pybridge")

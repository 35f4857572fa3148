"""The Julia runtime: finding Julia, starting it in this process, and sending it requests.

Knows nothing of what requests mean. Importing it does no work; the first `request` starts Julia.
"""

from pybridge.julia.find import Discovery, Step, find
from pybridge.julia.probe import Installation
from pybridge.julia.runtime import Runtime, Status

__all__ = ["Discovery", "Installation", "Runtime", "Status", "Step", "find", "request", "status"]

_RUNTIME = Runtime()

request = _RUNTIME.request
status = _RUNTIME.status

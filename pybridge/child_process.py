"""What a process owes to the one that started it."""

from __future__ import annotations

import os
import threading
import time


def end_with_parent() -> None:
    """From now on this process ends once its parent is gone, even while it computes what never ends."""
    threading.Thread(target=_end_after, args=(os.getppid(),), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)

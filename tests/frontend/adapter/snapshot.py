"""What a version of JAX has that pybridge depends on, in one file for each version.

For each primitive: the names of its parameters, as they occur in the jaxprs of all cases, and digests of the
sources of its JVP and transpose rules. Two versions compared line by line show what a release has changed.
Made anew, in an environment with that JAX, by

    PYTHONPATH=tests python tests/frontend/adapter/snapshot.py
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from cases import CASES
from jax.extend.core import jaxprs_in_params
from jax.interpreters import ad

from pybridge.frontend.adapter import internals, registry

FOLDER = Path(__file__).parent / "snapshots"

Snapshot = dict[str, dict[str, Any]]
"""For each primitive `params` (None where no case has it), `jvp` and `transpose` (or None)."""


def path(version: tuple[int, ...] = jax.__version_info__) -> Path:
    """The file of that minor release."""
    return FOLDER / f"jax-{version[0]}.{version[1]}.json"


def newest() -> Path:
    return max(FOLDER.glob("jax-*.json"), key=lambda file: [int(n) for n in file.stem[4:].split(".")])


def read(file: Path) -> Snapshot:
    return json.loads(file.read_text())


def write(file: Path, snapshot: Snapshot) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(snapshot.items()))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def take() -> Snapshot:
    """Of the JAX that is installed."""
    jvps = {p.name: rule for p, rule in ad.primitive_jvps.items()}
    transposes = {p.name: rule for p, rule in [*ad.primitive_transposes.items()]}
    transposes |= {p.name: rule for p, rule in internals.fancy_transposes.items()}
    params = _parameters()
    return {
        name: {
            "params": sorted(params[name]) if name in params else None,
            "jvp": _digest(jvps[name]) if name in jvps else None,
            "transpose": _digest(transposes[name]) if name in transposes else None,
        }
        for name in registry.primitives()
    }


def _parameters() -> dict[str, set[str]]:
    """The names of the parameters of each primitive that occurs in the cases' jaxprs."""
    found: dict[str, set[str]] = {}
    for case in CASES:
        with case.context():
            inputs = case.inputs()
            for eqn in _equations(jax.make_jaxpr(case.f)(*inputs)):
                found.setdefault(eqn.primitive.name, set()).update(eqn.params)
    return found


def _equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for body in jaxprs_in_params(eqn.params):
            yield from _equations(body)


def _digest(rule: Any) -> str:
    return hashlib.sha256("\n".join(_sources(rule, 3)).encode()).hexdigest()[:12]


def _sources(rule: Any, depth: int) -> Iterator[str]:
    """The source of a rule, and of the functions that it is made of."""
    if isinstance(rule, functools.partial):
        parts = [rule.func, *rule.args, *rule.keywords.values()]
    elif inspect.isfunction(rule):
        yield inspect.getsource(rule)
        parts = [cell.cell_contents for cell in rule.__closure__ or () if not _is_empty(cell)]
    else:
        return
    if depth:
        for part in parts:
            for one in part if isinstance(part, tuple | list) else (part,):
                yield from _sources(one, depth - 1)


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def differences(old: Snapshot, new: Snapshot) -> list[str]:
    """A line for each primitive that is new, gone or changed."""
    lines = [f"{name}: gone" for name in sorted(old.keys() - new.keys())]
    lines += [f"{name}: new" for name in sorted(new.keys() - old.keys())]
    for name in sorted(old.keys() & new.keys()):
        was, now = old[name], new[name]
        if was["params"] != now["params"] and None not in (was["params"], now["params"]):
            lines.append(f"{name}: parameters {', '.join(was['params'])} -> {', '.join(now['params'])}")
        lines += [f"{name}: another {rule} rule" for rule in ("jvp", "transpose") if was[rule] != now[rule]]
    return lines


def take_elsewhere() -> Snapshot:
    """In a process of its own: what a process imports registers primitives."""
    words = [sys.executable, __file__, "--print"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(FOLDER.parents[2]), *sys.path])}
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=240, env=environment)
    return json.loads(done.stdout)


if __name__ == "__main__" and "--print" in sys.argv:
    print(json.dumps(take()))
elif __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    before = read(newest()) if any(FOLDER.glob("*.json")) else {}
    now = take()
    write(path(), now)
    print("\n".join(differences(before, now)))

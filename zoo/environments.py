"""The environments in which the zoo runs: a Python, a JAX and the packages of `zoo/requirements`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
_INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class EnvironmentFailed(Exception):
    """An environment could not be made."""


@dataclass(frozen=True)
class Environment:
    """python: a release. requirements: the folder with `packages.txt`, and with `alone.txt`.

    What is in the latter is installed without what it depends on: it asks for an older JAX though it works
    with this one, or for much that its problem does not use.
    """

    python: str
    requirements: str

    def executable(self) -> Path:
        """The interpreter with everything installed, which happens at the first use and on a change.

        Raises EnvironmentFailed.
        """
        folder = ROOT / f".venv-zoo-{self.python}"
        executable, stamp = folder / "bin" / "python", folder / "zoo.stamp"
        wanted = "".join(file.read_text() for file in self._files())
        if stamp.exists() and stamp.read_text() == wanted:
            return executable
        if not executable.exists():
            _run([self._interpreter(), "-m", "venv", str(folder)])
        packages, alone = self._files()
        _run([str(executable), *_INSTALL, "-r", str(packages), "-e", str(ROOT)])
        _run([str(executable), *_INSTALL, "--no-deps", "-r", str(alone)])
        stamp.write_text(wanted)
        return executable

    def _files(self) -> tuple[Path, Path]:
        folder = _REQUIREMENTS / self.requirements
        return folder / "packages.txt", folder / "alone.txt"

    def _interpreter(self) -> str:
        found = _run([str(ROOT / ".ci" / "pythons"), self.python]).split()
        if not found:
            raise EnvironmentFailed(f"there is no Python {self.python} on this machine")
        return found[0]


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise EnvironmentFailed(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


ENVIRONMENTS = (Environment("3.13", "jax-0.12"), Environment("3.11", "jax-0.10.1"))

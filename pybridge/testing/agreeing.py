"""The assertion: engines have the same derivatives of a function, and these are those of its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..comparison import Comparison


def assert_derivatives_agree(
    f: Callable,
    args: Sequence[Any],
    engines: Iterable[str] = ("transpose",),
    order: int = 2,
    rtol: float | None = None,
    seed: int = 0,
) -> None:
    """Raises AssertionError unless value, JVP and VJP of `f` at `args` are the same by all engines.

    engines: names; each is held against JAX in float64, and that against difference quotients.
    order: 1, or 2 for the Hessian's products with vectors too, by each nesting of forward and reverse mode.
    rtol: the relative error that is agreement; by default what rounding explains.
    seed: of the random tangents and cotangents.

    The message has each engine's errors by argument and result, and of first derivatives the first equation
    of the function, with its line, at which they differ. Raises what `pybridge.compare` raises where there is
    nothing to compare.
    """
    __tracebackhide__ = True
    told = list(_told(f, args, list(engines), order, rtol, seed))
    if told:
        raise AssertionError("\n".join(told))


def _told(
    f: Callable, args: Sequence[Any], engines: list[str], order: int, rtol: float | None, seed: int
) -> Iterator[str]:
    from ..comparison import check, compare

    result = compare(f, *args, engines=engines, repeats=0, order=order, rtol=rtol, seed=seed)
    for engine in engines:
        yield from _complaints(result, engine)
        if result[engine].state == "disagrees" and (found := result.first_disagreement(engine)) is not None:
            yield f"  first at {found}"
    if result.derivative == "wrong":
        yield f"the derivative of {result.function} is not that of its value"
        yield from (f"  {line}" for line in str(check(f, *args, seed=seed, rtol=rtol)).splitlines())
    second = result.reference.second
    if second is not None and second.derivative == "wrong":
        yield f"the second derivative of {result.function} is not that of its first"


def _complaints(result: Comparison, engine: str) -> Iterator[str]:
    row = result[engine]
    if row.failed or not row.ran:
        yield f"{engine} has not all derivatives of {result.function}: {'; '.join(row.reasons)}"
    elif row.second is not None and row.second.cannot:
        yield f"{engine} has not all derivatives of {result.function}: {row.second.cannot}"
    elif row.state == "disagrees":
        yield f"{engine} disagrees with jax on {result.function}({result.arguments})"
        yield from (f"  {text}" for text in row.disagreements)

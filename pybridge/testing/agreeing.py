"""The assertion: engines have the same derivatives of a function, and these are those of its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UnknownOption

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
    order: 1, or 2 for the derivatives of the VJP too, forwards and backwards.
    rtol: the relative error that is agreement; by default what rounding explains.
    seed: of the random tangents and cotangents.

    The message has each engine's errors by argument and result, and of first derivatives the first equation
    of the function, with its line, at which they differ. Raises what `pybridge.compare` raises where there is
    nothing to compare.
    """
    __tracebackhide__ = True
    if order not in (1, 2):
        raise UnknownOption(f"order is 1 or 2, not {order!r}")
    told = list(_first(f, args, list(engines), rtol, seed))
    if not told and order == 2:
        told = list(_second(f, args, list(engines), rtol, seed))
    if told:
        raise AssertionError("\n".join(told))


def _first(
    f: Callable, args: Sequence[Any], engines: list[str], rtol: float | None, seed: int
) -> Iterator[str]:
    from ..comparison import check, compare

    result = compare(f, *args, engines=engines, repeats=0, rtol=rtol, seed=seed)
    for engine in engines:
        yield from _complaints(result, engine, "")
        if result[engine].state == "disagrees" and (found := result.first_disagreement(engine)) is not None:
            yield f"  first at {found}"
    if result.derivative == "wrong":
        yield f"the derivative of {result.function} is not that of its value"
        yield from (f"  {line}" for line in str(check(f, *args, seed=seed, rtol=rtol)).splitlines())


def _second(
    f: Callable, args: Sequence[Any], engines: list[str], rtol: float | None, seed: int
) -> Iterator[str]:
    from ..api.bridge import bridge
    from ..comparison import compare

    candidates = {f"by {e}": _pullback(bridge(f, engine=e), seed) for e in engines if e != "jax"}
    result = compare(
        _pullback(f, seed), *args, engines=["jax"], candidates=candidates, repeats=0, rtol=rtol, seed=seed
    )
    for name in candidates:
        yield from _complaints(result, name, "the VJP's ")


def _pullback(f: Callable, seed: int) -> Callable:
    """The cotangents of the inexact arguments, for random cotangents of the inexact results."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def inexact(x: Any) -> bool:
        return jnp.issubdtype(jnp.result_type(x), jnp.inexact)

    def pulled_back(*args: Any) -> list[Any]:
        leaves, tree = jax.tree.flatten(args)
        active = [i for i, x in enumerate(leaves) if inexact(x)]

        def of_active(*xs: Any) -> list[Any]:
            given = list(leaves)
            for i, x in zip(active, xs, strict=True):
                given[i] = x
            return [y for y in jax.tree.leaves(f(*jax.tree.unflatten(tree, given))) if inexact(y)]

        values, pull = jax.vjp(of_active, *(leaves[i] for i in active))
        rng = np.random.default_rng(seed)
        return list(pull([jnp.asarray(rng.standard_normal(y.shape), y.dtype) for y in values]))

    pulled_back.__name__ = f"vjp_of_{getattr(f, '__name__', 'f')}"
    return pulled_back


def _complaints(result: Comparison, engine: str, what: str) -> Iterator[str]:
    row = result[engine]
    if row.failed or not row.ran:
        yield f"{engine} has not {what or 'all '}derivatives of {result.function}: {'; '.join(row.reasons)}"
    elif row.state == "disagrees":
        yield f"{engine} disagrees with jax on {result.function}({result.arguments})"
        yield from (f"  {what}{text}" for text in row.disagreements)

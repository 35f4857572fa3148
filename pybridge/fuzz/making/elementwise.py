"""Random elementwise equations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...ir.numerals import COMPLEX, INTEGERS
from ...ir.schema import BINARY, UNARY, names
from ...ir.types import Atom, Literal, TensorType, Var
from .growing import Growth, Unfit

_DOMAINS = {
    **dict.fromkeys(("log", "log2", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma"), (0.3, 3.0)),
    **dict.fromkeys(("asin", "acos", "atanh", "erf_inv"), (-0.8, 0.8)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "tan"), (-1.2, 1.2)),
    "log1p": (-0.5, 2.0),
    "acosh": (1.2, 4.0),
}
"""Where a function is defined and smooth, and its values are not large."""

_INTEGRAL = frozenset({"not", "population_count", "clz"})
_WITH_COMPLEX = frozenset(
    names(
        """
        neg exp log log1p expm1 tanh logistic sin cos tan sqrt rsqrt square abs real imag conj copy sign
        """
    )
)
_ON_ALL = frozenset({"neg", "sign", "abs", "square", "copy"})


def _unary(op: str, g: Growth) -> None:
    if op in _INTEGRAL:
        x = g.integer() if op != "not" or g.chance(0.5) else g.pick(lambda t: t.dtype == "bool")
    elif op in _ON_ALL and g.chance(0.2):
        x = g.integer()
    elif op in _WITH_COMPLEX:
        x = g.inexact()
    else:
        x = g.real()
    g.one(op, g.within(x, *_DOMAINS[op]) if op in _DOMAINS else x)


def _second(g: Growth, x: Var) -> Atom:
    """A second operand for x: of its type, or a literal."""
    return g.literal(x.type.dtype) if g.chance(0.25) else g.array(x.type)


def _swapped(g: Growth, x: Atom, y: Atom) -> tuple[Atom, Atom]:
    return (y, x) if g.chance(0.4) else (x, y)


def _arithmetic(op: str, g: Growth) -> None:
    x = g.pick(lambda t: t.dtype != "bool")
    g.one(op, *_swapped(g, x, _second(g, x)))


def _order(op: str, g: Growth) -> None:
    x = g.pick(lambda t: t.dtype not in COMPLEX)
    g.one(op, *_swapped(g, x, _second(g, x)))


def _equality(op: str, g: Growth) -> None:
    x = g.pick()
    g.one(op, *_swapped(g, x, _second(g, x)))


def _quotient(op: str, g: Growth) -> None:
    x = g.pick(lambda t: t.dtype != "bool" and (op == "div" or t.dtype not in COMPLEX))
    y = g.array(x.type)
    if x.type.dtype in INTEGERS:
        g.one(op, x, Literal(g.rng.choice([1, 2, 3, 7]), x.type.dtype) if g.chance(0.7) else y)
    else:
        g.one(op, x, g.within(y, 0.4, 2.0) if isinstance(y, Var) and g.chance(0.9) else y)


def _pow(op: str, g: Growth) -> None:
    x = g.inexact()
    if g.chance(0.3):  # of any number, with a whole exponent
        g.one(op, g.tame(x), g.array(TensorType(g.rng.choice(["i32", "i8"]), x.type.shape)))
    else:
        g.one(op, g.within(x, 0.3, 2.0), g.tame(_variable(g, x.type)))


def _variable(g: Growth, type_: TensorType) -> Var:
    found = g.array(type_)
    if isinstance(found, Literal):
        raise Unfit
    return found


def _atan2(op: str, g: Growth) -> None:
    x = g.real()
    g.one(op, x, g.within(_variable(g, x.type), 0.2, 2.0))


def _bitwise(op: str, g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in INTEGERS or t.dtype == "bool")
    g.one(op, *_swapped(g, x, _second(g, x)))


def _shift(op: str, g: Growth) -> None:
    x = g.integer()
    g.one(op, x, Literal(g.rng.choice([0, 1, 3, 7, 8]), x.type.dtype) if g.chance(0.6) else g.array(x.type))


def _mulhi(op: str, g: Growth) -> None:
    x = g.integer()
    g.one(op, x, g.array(x.type))


def _complex(op: str, g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in ("f32", "f64"))
    g.one(op, *_swapped(g, x, _second(g, x)))


def _special(op: str, g: Growth) -> None:
    """Functions of two positive numbers, which JAX has in single and double precision."""
    x = g.pick(lambda t: t.dtype in ("f32", "f64"))
    first = g.within(x, 0.5, 2.5)
    second = g.within(_variable(g, x.type), 0.4, 2.5)
    if op == "zeta":
        first = g.one("add", first, Literal(1.5, x.type.dtype))
    if op == "polygamma":
        g.one(op, Literal(float(g.rng.randint(1, 3)), x.type.dtype), second)
    else:
        g.one(op, first, second)


def _beta(g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in ("f32", "f64"))
    dtype = x.type.dtype
    g.one("regularized_incomplete_beta", Literal(1.5, dtype), Literal(0.75, dtype), g.within(x, 0.1, 0.9))


def _select_n(g: Growth) -> None:
    x = g.pick()
    count = g.rng.choice([2, 2, 2, 3, 4])
    which = "bool" if count == 2 and g.chance(0.8) else g.rng.choice(["i32", "i32", "u8", "i64"])
    cases = [x, *(g.array(x.type) for _ in range(count - 1))]
    g.rng.shuffle(cases)
    g.one("select_n", g.array(TensorType(which, x.type.shape)), *cases)


def _clamp(g: Growth) -> None:
    x = g.pick(lambda t: t.dtype not in COMPLEX and t.dtype != "bool")
    dtype = x.type.dtype
    if g.chance(0.5):
        low, high = (0, 3) if dtype in INTEGERS else (-0.53, 0.71)
        g.one("clamp", Literal(low, dtype), x, Literal(high, dtype))
    else:
        g.one("clamp", g.array(x.type), x, g.array(x.type))


def _integer_pow(g: Growth) -> None:
    x = g.inexact()
    y = g.rng.choice([-3, -2, -1, 0, 1, 2, 3, 4, 5, 7])
    g.one("integer_pow", g.within(x, 0.5, 1.6) if y < 0 else g.tame(x), y=y)


def _reduce_precision(g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in ("f32", "f64", "bf16", "f16"))
    exponent, mantissa = g.rng.choice([(5, 10), (8, 7), (8, 23), (11, 52)])
    g.one("reduce_precision", x, exponent_bits=exponent, mantissa_bits=mantissa)


def _convert(g: Growth) -> None:
    x = g.pick()
    if x.type.inexact:
        dtypes = ["f16", "bf16", "f32", "f32", "f64", "f64", "c64", "c128"]
        dtype = g.rng.choice([*dtypes, "i32", "bool"])
    else:
        dtype = g.rng.choice(["i8", "i32", "i64", "u8", "u32", "bool", "f32", "f64", "bf16"])
    if x.type.inexact and dtype in ("i32", "bool"):
        g.conform(x, TensorType(dtype, x.type.shape))
    else:
        g.one("convert_element_type", x, dtype=dtype)


def _threefry(g: Growth) -> None:
    x = g.array(TensorType("u32", g.pick().type.shape))
    keys = [Literal(g.rng.randrange(2**32), "u32") for _ in range(2)]
    words = g.add("threefry2x32", *keys, x, g.array(x.type))
    low = g.one("shift_right_logical", words[0], Literal(24, "u32"))
    small = g.one("convert_element_type", low, dtype=g.rng.choice(["f32", "f64"]))
    g.one("mul", small, Literal(1 / 256, small.type.dtype))


def _round(g: Growth) -> None:
    g.one("round", g.real(), method=g.rng.randrange(2))


def _bitcast(g: Growth) -> None:
    """Of integers among one another: the bits of a float are another function in another precision."""
    g.one("bitcast_convert_type", g.integer(), dtype=g.rng.choice(["i8", "u8", "i32", "u32", "i64", "u64"]))


_FAMILIES: dict[str, Callable[[str, Growth], None]] = {
    **dict.fromkeys(("add", "sub", "mul"), _arithmetic),
    **dict.fromkeys(("max", "min", "lt", "le", "gt", "ge"), _order),
    **dict.fromkeys(("eq", "ne"), _equality),
    **dict.fromkeys(("div", "rem"), _quotient),
    **dict.fromkeys(("and", "or", "xor"), _bitwise),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), _shift),
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "polygamma", "zeta"), _special),
    "pow": _pow,
    "atan2": _atan2,
    "nextafter": _order,
    "complex": _complex,
    "mulhi": _mulhi,
}

MAKERS: dict[str, Callable[[Growth], None]] = {
    **{op: partial(_unary, op) for op in UNARY},
    **{op: partial(_FAMILIES[op], op) for op in BINARY},
    "regularized_incomplete_beta": _beta,
    "select_n": _select_n,
    "clamp": _clamp,
    "round": _round,
    "integer_pow": _integer_pow,
    "reduce_precision": _reduce_precision,
    "convert_element_type": _convert,
    "threefry2x32": _threefry,
    "bitcast_convert_type": _bitcast,
}

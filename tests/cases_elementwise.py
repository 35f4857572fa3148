"""Cases of the elementwise primitives: one line of data each."""

from __future__ import annotations

import jax.numpy as jnp
from casekit import Case, Make, bools, distinct, given, ints, real, smooth, whole_range
from jax import lax

FLOAT = "f32 f64 f16 bf16"
WIDE = "f32 f64"
COMPLEX = "c64 c128"
SIGNED = "i8 i16 i32 i64"
INTEGER = "i8 i16 i32 i64 u8 u16 u32 u64"

# op, how the operand is made, dtypes, whether it is differentiable there
_UNARY: list[tuple[str, Make, str]] = [
    ("neg", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("sign", smooth(-2, 2), FLOAT),
    ("floor", smooth(-3, 3), FLOAT),
    ("ceil", smooth(-3, 3), FLOAT),
    ("exp", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("exp2", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("log", real(0.3, 3), f"{FLOAT} {COMPLEX}"),
    ("expm1", real(-1, 1), f"{FLOAT} {COMPLEX}"),
    ("log1p", real(-0.5, 2), f"{FLOAT} {COMPLEX}"),
    ("tanh", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("logistic", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("sin", real(-3, 3), f"{FLOAT} {COMPLEX}"),
    ("cos", real(-3, 3), f"{FLOAT} {COMPLEX}"),
    ("tan", real(-1, 1), f"{FLOAT} {COMPLEX}"),
    ("asin", real(-0.8, 0.8), f"{WIDE} {COMPLEX}"),
    ("acos", real(-0.8, 0.8), f"{WIDE} {COMPLEX}"),
    ("atan", real(-0.8, 0.8), f"{WIDE} {COMPLEX}"),
    ("sinh", real(-1, 1), f"{WIDE} {COMPLEX}"),
    ("cosh", real(-1, 1), f"{WIDE} {COMPLEX}"),
    ("asinh", real(0.1, 2), f"{WIDE} {COMPLEX}"),
    ("acosh", real(1.2, 3), f"{WIDE} {COMPLEX}"),
    ("atanh", real(-0.7, 0.7), f"{WIDE} {COMPLEX}"),
    ("sqrt", real(0.3, 3), f"{FLOAT} {COMPLEX}"),
    ("rsqrt", real(0.3, 3), f"{FLOAT} {COMPLEX}"),
    ("cbrt", real(0.3, 3), FLOAT),
    ("square", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("erf", real(-2, 2), FLOAT),
    ("erfc", real(-2, 2), FLOAT),
    ("erf_inv", real(-0.8, 0.8), FLOAT),
    ("lgamma", real(0.5, 4), WIDE),
    ("digamma", real(0.5, 4), WIDE),
    ("bessel_i0e", real(-3, 3), WIDE),
    ("bessel_i1e", real(-3, 3), WIDE),
    ("abs", smooth(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("real", real(-2, 2), COMPLEX),
    ("imag", real(-2, 2), COMPLEX),
    ("conj", real(-2, 2), f"{WIDE} {COMPLEX}"),
    ("copy", real(-2, 2), f"{FLOAT} {COMPLEX}"),
    ("stop_gradient", real(-2, 2), f"{WIDE} {COMPLEX}"),
]

# Without derivatives.
_UNARY_PLAIN: list[tuple[str, Make, str]] = [
    ("is_finite", given([0.5, float("inf"), float("nan"), -float("inf")]), FLOAT),
    ("not", whole_range(), f"bool {INTEGER}"),
    ("population_count", whole_range(), INTEGER),
    ("clz", whole_range(), INTEGER),
    ("neg", whole_range(), SIGNED),
    ("abs", ints(-100, 100), SIGNED),
    ("sign", ints(-2, 3), INTEGER.replace("u", "i")),
    ("square", ints(-10, 10), "i32 i64"),
    ("copy", whole_range(), "bool i32"),
    ("exp", given([[0.0, -0.0, float("inf")], [-float("inf"), float("nan"), 1e-30]]), WIDE),
    ("floor", given([-0.0, 0.0, 1.0, -1.0, float("inf"), float("nan"), 1e20]), WIDE),
]

_INF, _NAN = float("inf"), float("nan")
# On both sides of where the expansions meet, at 0 and outside the domain.
_GAMMA_A = [1.0, 1.0, 3.0, 3.0, 20.0, 20.0, 1e-3, 2.0, 0.0, -1.0, 2.0, _NAN, 2.0]
_GAMMA_X = [0.999, 1.001, 2.9, 3.1, 2.0, 60.0, 0.3, 0.0, 1.0, 1.0, -1.0, 1.0, _NAN]

_BINARY: list[tuple[str, Make, Make, str, tuple[int, ...]]] = [
    ("add", real(-2, 2), real(-2, 2), f"{FLOAT} {COMPLEX}", (0, 1)),
    ("sub", real(-2, 2), real(-2, 2), f"{FLOAT} {COMPLEX}", (0, 1)),
    ("mul", real(-2, 2), real(-2, 2), f"{FLOAT} {COMPLEX}", (0, 1)),
    ("div", real(-2, 2), real(0.5, 2), f"{FLOAT} {COMPLEX}", (0, 1)),
    ("rem", smooth(-2, 2), given(7.0), WIDE, ()),
    ("rem", smooth(-3, 3), real(3.6, 3.9), WIDE, (0, 1)),
    ("pow", real(0.5, 2), real(-2, 2), f"{FLOAT} {COMPLEX}", (0, 1)),
    ("pow", real(-2, 2), ints(-2, 4, dtype="i32"), f"{WIDE} {COMPLEX}", (0,)),
    ("atan2", real(0.3, 2), real(-2, 2), WIDE, (0, 1)),
    ("max", distinct(), real(-0.1, 0.1), FLOAT, (0, 1)),
    ("min", distinct(), real(-0.1, 0.1), FLOAT, (0, 1)),
    ("complex", real(-2, 2), real(-2, 2), WIDE, (0, 1)),
    ("igamma", real(0.5, 3), real(0.5, 3), WIDE, (1,)),
    ("igammac", real(0.5, 3), real(0.5, 3), WIDE, (1,)),
    ("igamma_grad_a", real(0.5, 3), real(0.5, 3), WIDE, ()),
    ("igamma_grad_a", given(_GAMMA_A), given(_GAMMA_X), WIDE, ()),
    ("igamma", given(_GAMMA_A), given(_GAMMA_X), WIDE, ()),
    ("igammac", given(_GAMMA_A), given(_GAMMA_X), WIDE, ()),
    ("zeta", real(1.5, 4), real(0.5, 3), WIDE, (1,)),
    ("polygamma", ints(0, 3), real(0.5, 3), WIDE, (1,)),
    ("add", whole_range(), whole_range(), INTEGER, ()),
    ("sub", whole_range(), whole_range(), INTEGER, ()),
    ("mul", whole_range(), whole_range(), INTEGER, ()),
    # Of JAX since 0.10.2.
    *([("mulhi", whole_range(), whole_range(), INTEGER, ())] if hasattr(lax, "mulhi") else []),
    ("div", ints(-100, 100), ints(1, 9), SIGNED, ()),
    ("div", ints(0, 100), ints(1, 9), "u8 u32 u64", ()),
    ("rem", ints(-100, 100), ints(1, 9), SIGNED, ()),
    ("max", whole_range(), whole_range(), f"bool {INTEGER}", ()),
    ("min", whole_range(), whole_range(), f"bool {INTEGER}", ()),
    ("max", given([1.0, float("nan"), -0.0]), given([float("nan"), 1.0, 0.0]), WIDE, ()),
    ("shift_left", whole_range(), ints(0, 8), INTEGER, ()),
    ("shift_right_arithmetic", whole_range(), ints(0, 8), INTEGER, ()),
    ("shift_right_logical", whole_range(), ints(0, 8), INTEGER, ()),
    *((op, whole_range(), whole_range(), f"bool {INTEGER}", ()) for op in ("and", "or", "xor")),
    *((op, ints(-2, 3), ints(-2, 3), "i8 i32 i64", ()) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((op, ints(-2, 3), ints(-2, 3), FLOAT, ()) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((op, bools(), bools(), "bool", ()) for op in ("eq", "ne")),
    ("eq", ints(-1, 1), ints(-1, 1), COMPLEX, ()),
    *(
        (op, given([1.0, float("nan"), -0.0]), given([float("nan")] * 2 + [0.0]), WIDE, ())
        for op in ("lt", "ne")
    ),
]

_NAMES = {
    "not": lax.bitwise_not,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "copy": jnp.copy,
}


def _function(op: str):
    return _NAMES.get(op) or getattr(lax, op)


def _numbered(cases: list[Case]) -> list[Case]:
    """Names unique by a number where an op has several rows at one dtype."""
    seen: dict[str, int] = {}
    named = []
    for case in cases:
        n = seen[case.name] = seen.get(case.name, 0) + 1
        named.append(case if n == 1 else Case(**{**vars(case), "name": f"{case.name}/{n}"}))
    return named


def _unary() -> list[Case]:
    smooth_ones = [
        Case(f"{op}/{dtype}", op, _function(op), (make,), dtype, (0,))
        for op, make, dtypes in _UNARY
        for dtype in dtypes.split()
    ]
    plain = [
        Case(f"{op}/{dtype}", op, _function(op), (make,), dtype)
        for op, make, dtypes in _UNARY_PLAIN
        for dtype in dict.fromkeys(dtypes.split())
    ]
    return smooth_ones + plain


def _binary() -> list[Case]:
    return [
        Case(f"{op}/{dtype}", op, _function(op), (x, y), dtype, active)
        for op, x, y, dtypes, active in _BINARY
        for dtype in dtypes.split()
    ]


def _each(
    op: str, dtypes: str, f, makes: tuple[Make, ...], active: tuple[int, ...] = (), name: str = "", **more
):
    return [Case(f"{op}{name}/{dtype}", op, f, makes, dtype, active, **more) for dtype in dtypes.split()]


def _as_a_sum(x, y):
    """nextafter, of which JAX has a derivative since 0.12."""
    x0, y0 = lax.stop_gradient((x, y))
    return x + (lax.nextafter(x0, y0) - x0)


_ATTRIBUTED = [
    # Of complex numbers JAX has a derivative since 0.12.
    *_each("sign", COMPLEX, lax.sign, (real(0.5, 2),), (0,), reference=lambda z: z / jnp.abs(z)),
    *_each("nextafter", WIDE, lax.nextafter, (real(-2, 2), real(-2, 2)), (0, 1), reference=_as_a_sum),
    *_each(
        "mul",
        "f32 f16",
        lambda x, y: lax.mul(x, y, out_dtype=jnp.promote_types(x.dtype, jnp.float32)),
        (real(-2, 2), real(-2, 2)),
        (0, 1),
        "_out_dtype",
    ),
    *_each(
        "mul",
        "i32 f32",
        lambda x, n: lax.mul(lax.mul(x, n, out_dtype=jnp.float32), n[0, 0], out_dtype=jnp.int8),
        (ints(-9, 9), ints(-9, 9, dtype="i16")),
        (),
        "_out_dtype_converts",
    ),
    *_each("round", WIDE, lambda x: lax.round(x, lax.RoundingMethod(0)), (smooth(-3, 3),), (0,), "_away"),
    *_each(
        "round",
        WIDE,
        lambda x: lax.round(x, lax.RoundingMethod(1)),
        (given([0.5, 1.5, -2.5, 2.6]),),
        (),
        "_even",
    ),
    *_each("integer_pow", f"{WIDE} f16 {COMPLEX}", lambda x: lax.integer_pow(x, 3), (real(-2, 2),), (0,)),
    *_each(
        "integer_pow", f"{WIDE} {COMPLEX}", lambda x: lax.integer_pow(x, -2), (real(0.5, 2),), (0,), "_neg"
    ),
    *_each("integer_pow", "f32 i32", lambda x: lax.integer_pow(x, 0), (ints(-3, 4),), (), "_0"),
    *_each("integer_pow", "i32 i64 u8", lambda x: lax.integer_pow(x, 5), (ints(0, 4),), (), "_int"),
    *_each(
        "bitcast_convert_type",
        "f32 i32",
        lambda x: lax.bitcast_convert_type(x, jnp.uint32 if x.dtype.itemsize == 4 else jnp.uint64),
        (ints(-9, 9),),
        (),
    ),
    *_each(
        "bitcast_convert_type",
        "f64 f32",
        lambda x: lax.bitcast_convert_type(x, jnp.uint8),
        (real(-9, 9),),
        (),
        "_narrower",
    ),
    *_each(
        "bitcast_convert_type",
        "u8",
        lambda x: lax.bitcast_convert_type(x, jnp.float32),
        (ints(0, 60, (2, 4)),),
        (),
        "_wider",
    ),
    *_each(
        "bitcast_convert_type",
        "f32 f64",
        lambda x: x * (lax.bitcast_convert_type(x, jnp.int32 if x.dtype == jnp.float32 else jnp.int64) % 3),
        (real(-9, 9),),
        (0,),
        "_beside",
    ),
    *_each("reduce_precision", "f32 f64", lambda x: lax.reduce_precision(x, 5, 10), (real(-2, 2),), (0,)),
    *_each(
        "convert_element_type", "f32 bf16 i32", lambda x: x.astype(jnp.float16), (ints(-9, 9),), (), "_f16"
    ),
    *_each(
        "convert_element_type", "f64 f16 bf16", lambda x: x.astype(jnp.float32), (real(-2, 2),), (0,), "_f32"
    ),
    *_each(
        "convert_element_type", "f32 i32 bool", lambda x: x.astype(jnp.complex64), (ints(0, 2),), (), "_c64"
    ),
    *_each(
        "convert_element_type", "f32 f16 i32 u8", lambda x: x.astype(jnp.bool_), (ints(0, 2),), (), "_bool"
    ),
    *_each(
        "convert_element_type", "f32 i32 u32 bool", lambda x: x.astype(jnp.int8), (ints(0, 2),), (), "_i8"
    ),
    *_each(
        "select_n",
        f"{WIDE} bf16 {COMPLEX}",
        lax.select_n,
        (bools(), real(-2, 2), real(-2, 2)),
        (1, 2),
        "_bool",
    ),
    *_each(
        "select_n",
        "f32 f64",
        lambda i, *xs: lax.select_n(i, *xs),
        (ints(0, 3, dtype="i32"), *[real(-2, 2)] * 3),
        (1, 2, 3),
        "_index",
    ),
    *_each(
        "select_n",
        "f32 i32",
        lambda p, x, y: lax.select_n(p[0, 0], x, y),
        (bools(), ints(0, 9), ints(0, 9)),
        (),
        "_scalar",
    ),
    *_each("clamp", WIDE, lax.clamp, (given(-0.5), distinct(), given(0.5)), (1,), "_scalars"),
    *_each("clamp", "f32 f64", lax.clamp, (real(-0.6, -0.5), distinct(), real(0.4, 0.6)), (0, 1, 2)),
    *_each("clamp", "i32 u8", lax.clamp, (given(3), ints(0, 9), given(6))),
    *_each(
        "regularized_incomplete_beta",
        WIDE,
        lax.betainc,
        (real(0.5, 3), real(0.5, 3), real(0.2, 0.8)),
        (2,),
    ),
    *(
        case
        for op in (lax.igamma, lax.igammac)
        for case in _each(op.__name__, WIDE, op, (real(0.5, 3), real(0.5, 3)), (0, 1), "_both", second=False)
    ),
    # A rank-0 variable together with arrays, and arrays with sizes of 1.
    *_each(
        "mul", WIDE, lambda x, c: x * c, (real(-2, 2), real(-2, 2, ())), (0, 1), "_by_scalar", exact=False
    ),
    *_each(
        "div", WIDE, lambda x, c: x / c, (real(-2, 2), real(1, 2, (1, 4))), (0, 1), "_by_row", exact=False
    ),
    *_each("add", "f32 bf16", lambda x: 2 * x + 0.1, (real(-2, 2),), (0,), "_literals", exact=False),
]

# Of JAX since 0.11.
_LOG2 = _each("log2", f"{FLOAT} {COMPLEX}", getattr(lax, "log2", None), (real(0.3, 3),), (0,))
_ONE_MINUS_SQUARE = [
    case
    for dtypes, make, active in ((f"{FLOAT} {COMPLEX}", real(-2, 2), (0,)), ("i32 u8", whole_range(), ()))
    for case in _each("one_minus_square", dtypes, getattr(lax, "one_minus_square", None), (make,), active)
]

# Of JAX since 0.12.
_POLYNOMIAL = [
    *_each(
        "program",
        f"{FLOAT} c64",
        lambda x, c: lax.polynomial(x, [0.5, c, 2.0, c[:1], -1.0, 0.25]),
        (real(-1, 1), real(-1, 1)),
        (0, 1),
        "_polynomial",
        exact=False,
    ),
    *_each(
        "program",
        "i32",
        lambda x: lax.polynomial(x, [7, 0, -3]),
        (ints(-9, 9),),
        (),
        "_polynomial_of_integers",
    ),
    *_each(
        "program",
        "f32",
        lambda x: lax.polynomial(2.0, [x, 1.0, 3.0]),
        (real(-1, 1, ()),),
        (0,),
        "_polynomial_of_a_number",
        exact=False,
    ),
]

_NEW = {"log2": _LOG2, "one_minus_square": _ONE_MINUS_SQUARE, "polynomial": _POLYNOMIAL}

CASES = _numbered(
    [
        *_unary(),
        *_binary(),
        *_ATTRIBUTED,
        *(case for name, cases in _NEW.items() if hasattr(lax, name) for case in cases),
    ]
)

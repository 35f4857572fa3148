"""Functions with one numerical fault each, marked where it is by a comment `fault` on its line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

F = np.float32


@dataclass(frozen=True)
class Fault:
    """op: of the equation that is to blame, or of the one that its NaN has an infinity from.

    stage: where the result is not finite; "rounding" otherwise. place: trips and branches.
    says: a word of the way out.
    """

    f: Callable[..., Any]
    args: tuple[Any, ...]
    stage: str
    op: str
    place: tuple[str, ...] = ()
    says: str = ""

    @property
    def line(self) -> int:
        lines, first = inspect.getsourcelines(self.f)
        return first + next(k for k, line in enumerate(lines) if "# fault" in line)


def late_guard_of_sqrt(x):
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))  # fault


def late_guard_of_division(x):
    return jnp.sum(jnp.where(x > 0, 1 / x, 0.0))  # fault


def late_guard_of_log(x):
    y = jnp.log(x)  # fault
    return jnp.sum(jnp.where(x > 0, y, 0.0))


def late_guard_out_of_domain(x):
    y = jnp.arcsin(x)  # fault
    return jnp.sum(jnp.where(jnp.abs(x) <= 1, y, 0.0))


def norm_at_zero(x):
    return jnp.linalg.norm(x) + 1.0  # fault


def sqrt_of_square(x):
    return jnp.sqrt(x * x)  # fault


def power_at_zero(x):
    return jnp.sum(x**2.5 + x**0.5)  # fault


def log_of_underflow(x):
    y = jnp.exp(x)
    return jnp.log(jnp.sum(y))  # fault


def division_by_zero(x):
    y = x - 1.0
    return jnp.sum(1.0 / y)  # fault


def zero_by_zero(x):
    y = x - x
    return y / y  # fault


def exp_overflow(x):
    return jnp.exp(x)  # fault


def overflowing_softmax(x):
    y = jnp.exp(x)  # fault
    return y / jnp.sum(y)


def product_overflow(x):
    y = x * x  # fault
    return y + 1.0


def masked_by_product(x):
    y = 1 / x  # fault
    return jnp.sum(y * (x > 0))


def negative_root(x):
    return jnp.sqrt(x - 1.0)  # fault


def in_trip_900(x):
    def body(c, k):
        y = jnp.where(k == 900, 0.0, 1.0)
        return c + jnp.log(y), c  # fault

    return lax.scan(body, x, jnp.arange(1000))[0]


def derivative_in_trip_900(x):
    def body(c, k):
        y = c * jnp.where(k == 900, 0.0, 1.0)
        return c + 1e-3 * jnp.sqrt(y * y), None  # fault

    return lax.scan(body, x, jnp.arange(1000))[0]


def in_reversed_trip(x):
    def body(c, k):
        return c + 1 / (k - 30.0), None  # fault

    return lax.scan(body, x, jnp.arange(100.0), reverse=True)[0]


def nested_loops(x):
    def inner(c, k):
        return c / (k - 7.0), None  # fault

    def outer(c, k):
        return lax.cond(k == 4, lambda c: lax.scan(inner, c, jnp.arange(10.0))[0], lambda c: c, c), None

    return lax.scan(outer, x, jnp.arange(6))[0]


def in_while(x):
    def body(s):
        c, k = s
        return c + 1 / (12.0 - k), k + 1  # fault

    return lax.while_loop(lambda s: s[1] < 20, body, (x, 0))[0]


def in_branch(x):
    def bad(x):
        return jnp.log(x - x)  # fault

    return lax.cond(x > 0, lambda x: x, bad, x) + 1.0


def under_vmap(x):
    def one(x):
        y = x - 2.0
        return 1.0 / y  # fault

    return jax.vmap(one)(x)


@jax.custom_vjp
def _identity(x):
    return x * 1.0


def _identity_backward(_, ct):
    return (ct / (ct - ct),)


_identity.defvjp(lambda x: (x * 1.0, None), _identity_backward)


def wrong_rule(x):
    return jnp.sum(_identity(x))  # fault


def cancellation(x):
    y = 1e6 + x  # fault
    return y - 1e6


def variance(x):
    return jnp.mean(x * x) - jnp.mean(x) ** 2  # fault


def one_minus_cosine(x):
    y = jnp.cos(x)  # fault
    return (1 - y) / (x * x)


def quadratic_root(b):
    root = jnp.sqrt(b * b - 4.0)  # fault
    return (b - root) / 2


def exponential_minus_one(x):
    y = jnp.exp(x)  # fault
    return (y - 1) / x


def rounding_in_trip_900(x):
    def body(c, k):
        large = jnp.where(k == 900, 1e6, 1.0)
        y = c + large  # fault
        return y - large, None

    return lax.scan(body, x, jnp.arange(1000))[0]


def rounding_in_while(x):
    def body(s):
        y = s[0] + jnp.where(s[1] == 30, 1e7, 1.0)  # fault
        return y - jnp.where(s[1] == 30, 1e7, 1.0), s[1] + 1

    return lax.while_loop(lambda s: s[1] < 50, body, (x, 0))[0]


def rounding_in_branch(x):
    def lossy(x):
        y = x + 1e6  # fault
        return y - 1e6

    return lax.cond(x > 0, lossy, lambda x: x, x)


def rounding_under_a_rule(x):
    return _lossy(x)


@jax.custom_jvp
def _lossy(x):
    y = x + 1e6
    return y - 1e6


_lossy.defjvp(lambda primals, tangents: (_lossy(*primals), tangents[0]))

ZERO_ONE = np.array([0.0, 1.0], F)
BOTH = ("JVP", "VJP")

FAULTS = [
    Fault(late_guard_of_sqrt, (ZERO_ONE,), "VJP", "mul", (), "guards too late"),
    Fault(late_guard_of_division, (ZERO_ONE,), "VJP", "mul", (), "guards too late"),
    Fault(late_guard_of_log, (ZERO_ONE,), "VJP", "div", (), "guards too late"),
    Fault(late_guard_out_of_domain, (np.array([0.5, 2.0], F),), "VJP", "rsqrt", (), "guards too late"),
    Fault(norm_at_zero, (np.zeros(3, F),), "VJP", "mul", (), "sqrt"),
    Fault(sqrt_of_square, (F(0),), "VJP", "mul", (), "sqrt"),
    Fault(power_at_zero, (ZERO_ONE,), "VJP", "pow", (), "power"),
    Fault(log_of_underflow, (np.full(3, -200, F),), "value", "log", (), "underflowed"),
    Fault(division_by_zero, (np.array([1.0, 2.0], F),), "value", "div", (), "division by 0"),
    Fault(zero_by_zero, (F(1),), "value", "div", (), "0 / 0"),
    Fault(exp_overflow, (F(100),), "value", "exp", (), "overflows"),
    Fault(overflowing_softmax, (np.array([100.0, 1.0], F),), "value", "exp", (), "overflow"),
    Fault(product_overflow, (F(1e30),), "value", "mul", (), "largest number"),
    Fault(masked_by_product, (ZERO_ONE,), "value", "div", (), "0 * inf"),
    Fault(negative_root, (F(0.5),), "value", "sqrt", (), "negative"),
    Fault(in_trip_900, (F(1),), "value", "log", ("trip 900",), "log of 0"),
    Fault(derivative_in_trip_900, (F(1),), "VJP", "mul", ("trip 900",), "sqrt"),
    Fault(in_reversed_trip, (F(1),), "value", "div", ("trip 30",), "division by 0"),
    Fault(nested_loops, (F(1),), "value", "div", ("trip 4", "branch 1", "trip 7"), "division by 0"),
    Fault(in_while, (F(1),), "value", "div", ("trip 12",), "division by 0"),
    Fault(in_branch, (F(-1),), "value", "log", ("branch 0",), "log of 0"),
    Fault(under_vmap, (np.array([1.0, 2.0], F),), "value", "div", (), "division by 0"),
    Fault(wrong_rule, (ZERO_ONE,), "VJP", "div", (), "division by 0"),
    Fault(cancellation, (F(0.3),), "rounding", "add"),
    Fault(variance, (np.linspace(1000, 1001, 20).astype(F),), "rounding", "reduce_sum"),
    Fault(one_minus_cosine, (F(1e-3),), "rounding", "cos"),
    Fault(quadratic_root, (F(1e4),), "rounding", "sqrt"),
    Fault(exponential_minus_one, (F(1e-5),), "rounding", "exp"),
    Fault(rounding_in_trip_900, (F(0.3),), "rounding", "add", ("trip 900",)),
    Fault(rounding_in_while, (F(0.3),), "rounding", "add", ("trip 30",)),
    Fault(rounding_in_branch, (F(0.3),), "rounding", "add", ("branch 1",)),
]

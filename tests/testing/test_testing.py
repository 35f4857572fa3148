"""What people's tests get: an assertion, a fixture and a mixin, with failures that say where."""

from __future__ import annotations

import subprocess
import sys
import unittest

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb
from pybridge import cache
from pybridge.testing import DerivativeTests
from pybridge.testing import assert_derivatives_agree as assert_agree

pytest_plugins = ["pytester"]
CACHES = cache.user_folder().parent
X = np.random.default_rng(0).uniform(0.2, 1.2, (3, 4)).astype(np.float32)


def smooth(tree, n):
    return {"a": jnp.sin(tree["x"]) ** 2 / tree["y"], "n": n + 1}


def scaled(factor):
    """exp with a backward rule that is off by a factor."""

    @jax.custom_vjp
    def f(x):
        return jnp.exp(x)

    f.defvjp(lambda x: (jnp.exp(x), x), lambda x, ct: (factor * jnp.exp(x) * ct,))
    return f


def test_right_derivatives_pass():
    assert_agree(smooth, ({"x": X, "y": X + 1}, 3), engines=["transpose", "jax"])
    assert_agree(scaled(1.0), (X,), order=1)


def test_a_rule_that_is_no_derivative_fails_with_its_line():
    with pytest.raises(AssertionError, match="not that of its value") as failed:
        assert_agree(scaled(1.5), (X,), order=1)
    assert "test_testing.py" in str(failed.value)


def test_an_engine_that_is_wrong_fails_with_equation_and_line(monkeypatch):
    from pybridge.engines import ENGINES, Engine
    from pybridge.frontend.emission import to_jax

    @jax.custom_jvp
    def passed(x):
        return x

    passed.defjvp(lambda primals, tangents: (primals[0], 1.25 * tangents[0]))

    def apply(program, arrays, options):
        made = {v: eq.op for eq in program.equations for v in eq.outputs}
        results = zip(program.outputs, to_jax(program)(*arrays), strict=True)
        return [passed(y) if made[v] == "sin" else y for v, y in results]

    monkeypatch.setitem(ENGINES, "skewed", Engine("skewed", apply, lambda: None, ("xla",)))
    with pytest.raises(AssertionError, match="skewed disagrees with jax") as failed:
        assert_agree(lambda x: jnp.sin(jnp.exp(x)), (X,), engines=["skewed"])
    text = str(failed.value)
    assert "= sin %1" in text and "test_testing.py:" in text and "VJP by x" in text


def test_a_second_derivative_that_is_wrong(monkeypatch):
    from pybridge.engines import ENGINES, Engine
    from pybridge.frontend.emission import to_jax

    @jax.custom_jvp
    def cosine(x):
        return jnp.cos(x)

    cosine.defjvp(lambda primals, tangents: (jnp.cos(primals[0]), jnp.sin(primals[0]) * tangents[0]))

    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    sine.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), cosine(primals[0]) * tangents[0]))

    def apply(program, arrays, options):
        if [eq.op for eq in program.equations] == ["sin"]:
            return [sine(*arrays)]
        return to_jax(program)(*arrays)

    monkeypatch.setitem(ENGINES, "second", Engine("second", apply, lambda: None, ("xla",)))
    assert_agree(jnp.sin, (X,), engines=["second"], order=1)
    with pytest.raises(AssertionError, match="second disagrees with jax on sin") as failed:
        assert_agree(jnp.sin, (X,), engines=["second"])
    assert "HVP (forward over reverse) by" in str(failed.value)


def test_an_engine_that_is_not_there_fails(monkeypatch):
    from pybridge.engines import ENGINES, Engine

    absent = Engine("absent", lambda *_: (), lambda: pb.EngineUnavailable("pip install it"), ("xla",))
    monkeypatch.setitem(ENGINES, "absent", absent)
    with pytest.raises(AssertionError, match="absent has not all derivatives of sin: pip install it"):
        assert_agree(jnp.sin, (X,), engines=["absent"], order=1)


def test_an_order_that_is_not_there():
    with pytest.raises(pb.UnknownOption, match="1 or 2"):
        assert_agree(jnp.sin, (X,), order=3)


def test_the_fixture_in_somebodys_tests(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the plugin is there once, installed or not
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHES))  # pytester gives it another home
    pytester.makepyfile(
        """
        import jax
        import jax.numpy as jnp

        def test_right(assert_derivatives_agree):
            assert_derivatives_agree(jnp.sin, (jnp.ones(3),), order=1)

        @jax.custom_jvp
        def f(x):
            return jnp.sin(x)

        f.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), tangents[0]))

        def test_wrong(assert_derivatives_agree):
            assert_derivatives_agree(f, (jnp.ones(3),), order=1)
        """
    )
    result = pytester.runpytest_subprocess("-p", "pybridge.testing.plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: the derivative of f is not that of its value*"])
    result.stdout.no_fnmatch_line("*agreeing.py*")


def test_those_who_do_not_use_it_import_nothing():
    code = (
        "import sys, pybridge.testing.plugin, pybridge.testing\n"
        "assert not {'jax', 'numpy', 'pybridge.comparison'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class InUnittest(DerivativeTests, unittest.TestCase):
    def test_right(self):
        self.assertDerivativesAgree(jnp.sin, (X,), order=1)

    def test_wrong(self):
        with self.assertRaisesRegex(AssertionError, "not that of its value"):
            self.assertDerivativesAgree(scaled(1.5), (X,), order=1)

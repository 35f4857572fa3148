"""What jax.checkpoint's policies say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from . import internals, next_objects
from .extend import new_jaxpr_eqn

Policy = Callable[..., Any]


def is_checkpoint(eqn: Any) -> bool:
    return eqn.primitive is internals.remat_p


def saves_everything(policy: Policy | None) -> bool:
    return policy is jax.checkpoint_policies.everything_saveable


def saveable_levels(policies: tuple[Policy, ...], eqn: Any) -> list[int]:
    """The places of the policies that allow to keep the equation's results."""
    return [level for level, policy in enumerate(policies) if is_saveable(policy, eqn)]


_MARK = "pybridge: may be kept"


def mark(var: Any, marked: Any) -> Any:
    """The equation `marked = var`, by which a policy that goes by marks knows the value."""
    return new_jaxpr_eqn([var], [marked], internals.name_p, {"name": _MARK}, internals.no_effects)


def is_mark(eqn: Any) -> bool:
    return eqn.primitive is internals.name_p and eqn.params["name"] == _MARK


def by_marks(eqn: Any) -> Any:
    """A checkpoint with a policy as one that also keeps what is marked; any other equation as it is."""
    policy = eqn.params.get("policy")
    if policy is None or "prevent_cse" not in eqn.params or saves_everything(policy):
        return eqn
    marks = jax.checkpoint_policies.save_only_these_names(_MARK)
    both = jax.checkpoint_policies.save_from_both_policies(policy, marks)
    return eqn.replace(params={**eqn.params, "policy": both})


def is_saveable(policy: Policy, eqn: Any) -> bool:
    """Whether the equation's results may be kept."""
    return not is_opened(eqn) and _allows(policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params))


def is_opened(eqn: Any) -> bool:
    """Whether policies are asked about the equations inside, as of calls and control flow."""
    known = eqn.primitive in internals.partial_eval_jaxpr_custom_rules or eqn.primitive.name in _BY_JVP
    return known or next_objects.is_custom_rule(eqn)


_BY_JVP = ("custom_jvp_call", "custom_vjp_call", "composite")
"""Of which the JVP, which comes first, leaves what is inside."""


def _allows(answer: Any) -> bool:
    """To offload a value is to keep it: there is but one memory here."""
    return not isinstance(internals.ensure_enum(answer), internals.RecomputeType)

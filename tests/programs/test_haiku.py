"""haiku: an LSTM unrolled by hk.dynamic_unroll, its sequences put in order by einops."""

from __future__ import annotations

import einops
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from sameness import assert_same_gradient, both_executes


def network(images):
    """Classifies an image read row by row."""
    rows = einops.rearrange(images, "batch height (width two) -> height batch (two width)", two=2)
    core = hk.LSTM(7)
    outputs, _ = hk.dynamic_unroll(core, rows, core.initial_state(images.shape[0]))
    pooled = einops.reduce(outputs, "(half time) batch hidden -> batch (half hidden)", "max", half=2)
    return hk.Linear(3)(einops.repeat(pooled, "batch features -> batch (features two)", two=2))


@both_executes
def test_lstm(execute):
    images = jnp.asarray(np.random.default_rng(7).standard_normal((4, 6, 8)), jnp.float32)
    model = hk.without_apply_rng(hk.transform(network))
    params = model.init(jax.random.key(0), images)

    def loss(params, images):
        return -jnp.mean(jax.nn.log_softmax(model.apply(params, images))[:, 1])

    assert_same_gradient(loss, params, images, execute=execute, argnums=(0, 1))

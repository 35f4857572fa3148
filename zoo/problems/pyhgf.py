"""pyhgf: beliefs propagated through networks of nodes, along a series of observations."""

from __future__ import annotations

import copy

import jax.numpy as jnp
import numpy as np
import pyhgf
from pyhgf.model import Network
from pyhgf.response import first_level_gaussian_surprise

# Until 0.1 inputs were nodes of their own.
_INPUT = (
    {"kind": "continuous-input"}
    if pyhgf.__version__.startswith("0.1.")
    else {"kind": "continuous-state", "precision": 1e4}
)


def volatility():
    """The surprise of a filter of three levels at 300 observations, by volatilities and couplings."""
    network = (
        Network()
        .add_nodes(**_INPUT)
        .add_nodes(kind="continuous-state", value_children=0, tonic_volatility=-4.0)
        .add_nodes(kind="continuous-state", volatility_children=1, tonic_volatility=-4.0)
    )
    series = np.sin(0.1 * np.arange(300.0)) + 0.1 * np.sin(2.7 * np.arange(300.0))
    network.input_data(input_data=series)
    attributes = copy.deepcopy(network.attributes)

    def loss(params):
        network.attributes = copy.deepcopy(attributes)
        for node in (1, 2):
            network.attributes[node]["tonic_volatility"] = params["volatility"][node - 1]
            network.attributes[node]["mean"] = params["mean"][node - 1]
        network.input_data(input_data=series)
        surprise = network.surprise(response_function=first_level_gaussian_surprise)
        return jnp.sum(surprise)

    return loss, ({"volatility": jnp.array([-3.0, -4.0]), "mean": jnp.array([0.1, 0.0])},)

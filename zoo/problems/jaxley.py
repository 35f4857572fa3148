"""jaxley: neurons with channels, integrated implicitly in time."""

from __future__ import annotations

import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH


def _cell(branches: int):
    compartment = jx.Compartment()
    parents = [-1] + [i // 2 for i in range(branches - 1)]
    cell = jx.Cell(jx.Branch(compartment, 3), parents=parents)
    cell.insert(HH())
    return cell


def neuron():
    """The voltage of a branched Hodgkin-Huxley neuron over 10 ms, by the conductances of its branches."""
    cell = _cell(5)
    for i in range(5):
        cell.branch(i).make_trainable("HH_gNa", verbose=False)
        cell.branch(i).make_trainable("HH_gK", verbose=False)
    cell.branch(0).loc(0.0).stimulate(
        jx.step_current(i_delay=1.0, i_dur=2.0, i_amp=0.5, delta_t=0.025, t_max=10.0), verbose=False
    )
    cell.branch(4).loc(1.0).record("v", verbose=False)

    def loss(params):
        voltages = jx.integrate(cell, params=params, delta_t=0.025)
        return jnp.mean((voltages[0] + 65.0) ** 2)

    return loss, (cell.get_parameters(),)


def network():
    """Two neurons with a synapse, and checkpoints along time."""
    from jaxley.connect import connect
    from jaxley.synapses import IonotropicSynapse

    cells = jx.Network([_cell(1), _cell(1)])
    connect(cells.cell(0).branch(0).loc(1.0), cells.cell(1).branch(0).loc(0.0), IonotropicSynapse())
    cells.set("IonotropicSynapse_gS", 1e-3)
    cells.make_trainable("IonotropicSynapse_gS", verbose=False)
    cells.cell(0).make_trainable("HH_gNa", verbose=False)
    cells.cell(0).branch(0).loc(0.0).stimulate(
        jx.step_current(i_delay=0.5, i_dur=1.0, i_amp=0.3, delta_t=0.025, t_max=7.0), verbose=False
    )
    cells.cell(1).branch(0).loc(1.0).record("v", verbose=False)

    def loss(params):
        voltages = jx.integrate(cells, params=params, delta_t=0.025, checkpoint_lengths=[17, 17])
        return jnp.mean(jnp.abs(voltages) ** 1.5)

    return loss, (cells.get_parameters(),)

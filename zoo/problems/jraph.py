"""jraph: graph networks, by segment sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jraph


def graph_network():
    """Three rounds of messages on a batch of three graphs, padded."""
    key = jax.random.key(0)
    graphs = []
    for nodes, edges in ((6, 14), (9, 20), (5, 8)):
        key, *keys = jax.random.split(key, 5)
        graphs.append(
            jraph.GraphsTuple(
                nodes=jax.random.normal(keys[0], (nodes, 8)),
                edges=jax.random.normal(keys[1], (edges, 8)),
                senders=jax.random.randint(keys[2], (edges,), 0, nodes),
                receivers=jax.random.randint(keys[3], (edges,), 0, nodes),
                n_node=jnp.array([nodes]),
                n_edge=jnp.array([edges]),
                globals=jnp.ones((1, 8)),
            )
        )
    batch = jraph.pad_with_graphs(jraph.batch(graphs), 32, 64, 5)
    mask = jraph.get_graph_padding_mask(batch)

    def layer(weights):
        return lambda *parts: jnp.tanh(sum(part @ w for part, w in zip(parts, weights, strict=True)))

    def loss(params):
        graph = batch
        for _ in range(3):
            graph = jraph.GraphNetwork(
                update_edge_fn=layer(params["edge"]),
                update_node_fn=layer(params["node"]),
                update_global_fn=layer(params["global"]),
            )(graph)
        return jnp.sum(jnp.where(mask[:, None], graph.globals, 0.0) ** 2)

    def matrices(key, count):
        return [0.3 * jax.random.normal(k, (8, 8)) for k in jax.random.split(key, count)]

    edge, node, whole = jax.random.split(jax.random.key(1), 3)
    return loss, ({"edge": matrices(edge, 4), "node": matrices(node, 4), "global": matrices(whole, 3)},)


def attention():
    """A graph attention layer: a softmax over the edges of each node."""
    senders = jnp.array([0, 1, 2, 3, 4, 5, 0, 2, 4, 1, 3, 5])
    receivers = jnp.array([1, 2, 3, 4, 5, 0, 3, 5, 1, 4, 0, 2])
    graph = jraph.GraphsTuple(
        nodes=jax.random.normal(jax.random.key(2), (6, 10)),
        edges=None,
        senders=senders,
        receivers=receivers,
        n_node=jnp.array([6]),
        n_edge=jnp.array([12]),
        globals=None,
    )

    def loss(params):
        network = jraph.GAT(
            attention_query_fn=lambda nodes: nodes @ params["query"],
            attention_logit_fn=lambda s, r, e: jax.nn.leaky_relu(
                jnp.concatenate([s, r], 1) @ params["logit"]
            ),
            node_update_fn=jnp.tanh,
        )
        return jnp.sum(network(graph).nodes ** 2)

    keys = jax.random.split(jax.random.key(3))
    return loss, (
        {"query": jax.random.normal(keys[0], (10, 6)), "logit": jax.random.normal(keys[1], (12, 1))},
    )

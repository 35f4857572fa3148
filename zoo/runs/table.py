"""The runs: each takes what wraps the one function that is bridged, and gives numbers to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Run:
    """function: here, imports what it needs and runs everything. title: what that is.

    tolerance: between the numbers of the two sides, relative: those of samplers are estimates.
    """

    function: Callable[[Wrap], Any]
    title: str
    tolerance: float

    @property
    def name(self) -> str:
        return self.function.__name__


def numpyro_nuts(wrap: Wrap) -> Any:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS
    from numpyro.infer.util import initialize_model

    x = jax.random.normal(jax.random.key(0), (500, 8))
    labels = (x @ jnp.linspace(-1.0, 1.0, 8) > 0.1).astype(float)

    def model(x, labels):
        weights = numpyro.sample("weights", dist.Normal(0.0, 1.0).expand([8]).to_event(1))
        bias = numpyro.sample("bias", dist.Normal(0.0, 2.0))
        numpyro.sample("labels", dist.Bernoulli(logits=x @ weights + bias), obs=labels)

    start = initialize_model(jax.random.key(1), model, model_args=(x, labels))
    sampler = MCMC(
        NUTS(potential_fn=wrap(start.potential_fn)), num_warmup=500, num_samples=1000, progress_bar=False
    )
    sampler.run(jax.random.key(2), init_params=start.param_info.z)
    return jnp.mean(sampler.get_samples()["weights"], axis=0)


def numpyro_schools(wrap: Wrap) -> Any:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS
    from numpyro.infer.reparam import TransformReparam
    from numpyro.infer.util import initialize_model

    effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def model():
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
        spread = numpyro.sample("spread", dist.HalfCauchy(5.0))
        with numpyro.plate("schools", 8), numpyro.handlers.reparam(config={"school": TransformReparam()}):
            standard = dist.TransformedDistribution(
                dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mean, spread)
            )
            school = numpyro.sample("school", standard)
            numpyro.sample("effects", dist.Normal(school, errors), obs=effects)

    start = initialize_model(jax.random.key(1), model)
    sampler = MCMC(
        NUTS(potential_fn=wrap(start.potential_fn)), num_warmup=1000, num_samples=4000, progress_bar=False
    )
    sampler.run(jax.random.key(2), init_params=start.param_info.z)
    return jnp.mean(sampler.get_samples()["mean"])


def blackjax_nuts(wrap: Wrap) -> Any:
    import blackjax
    import jax
    import jax.numpy as jnp

    distances = jnp.linspace(0.0, 3.0, 40)
    values = jnp.sin(2 * distances) + 0.1 * jnp.cos(17 * distances)

    @wrap
    def log_density(position):
        scale, noise = jnp.exp(position["scale"]), jnp.exp(position["noise"])
        covariance = jnp.exp(-0.5 * ((distances[:, None] - distances) / scale) ** 2)
        factor = jnp.linalg.cholesky(covariance + (noise**2 + 1e-8) * jnp.eye(40))
        white = jax.scipy.linalg.solve_triangular(factor, values, lower=True)
        prior = -0.5 * (position["scale"] ** 2 + position["noise"] ** 2)
        return prior - 0.5 * white @ white - jnp.sum(jnp.log(jnp.diag(factor)))

    warmup, sampling = jax.random.split(jax.random.key(0))
    start = {"scale": jnp.array(0.0), "noise": jnp.array(-1.0)}
    adapted, _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(warmup, start, num_steps=300)
    kernel = blackjax.nuts(log_density, **adapted.parameters).step

    @jax.jit
    def sample(state, keys):
        return jax.lax.scan(lambda s, k: (kernel(k, s)[0],) * 2, state, keys)

    _, states = sample(adapted.state, jax.random.split(sampling, 1000))
    return jnp.mean(states.position["scale"])


def optax_training(wrap: Wrap) -> Any:
    import jax
    import jax.numpy as jnp
    import optax

    x = jax.random.normal(jax.random.key(0), (256, 16))
    y = jnp.sin(x[:, 0]) * x[:, 1]
    sizes = (16, 64, 64, 1)
    keys = jax.random.split(jax.random.key(1), 3)
    params = [
        (jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:], strict=False)
    ]

    @wrap
    def loss(params, x, y):
        for weights, bias in params[:-1]:
            x = jax.nn.silu(x @ weights + bias)
        return jnp.mean(((x @ params[-1][0] + params[-1][1])[:, 0] - y) ** 2)

    optimizer = optax.adam(1e-3)

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    for _ in range(2000):
        params, state, value = step(params, state)
    return value


def diffrax_fit(wrap: Wrap) -> Any:
    import diffrax
    import jax
    import jax.numpy as jnp
    import optimistix as optx

    times = jnp.linspace(0.0, 10.0, 50)

    @wrap
    def samples(params):
        def field(t, y, params):
            return jnp.stack([y[1], -params["stiffness"] * jnp.sin(y[0]) - params["drag"] * y[1]])

        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=10.0,
            dt0=0.1,
            y0=jnp.stack([params["angle"], jnp.zeros(())]),
            args=params,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-7, atol=1e-7),
            adjoint=diffrax.ForwardMode(),
            max_steps=1024,
        ).ys[:, 0]

    truth = {"stiffness": jnp.array(2.0), "drag": jnp.array(0.2), "angle": jnp.array(1.0)}
    data = samples(truth) + 0.01 * jax.random.normal(jax.random.key(0), times.shape)
    start = {"stiffness": jnp.array(1.7), "drag": jnp.array(0.1), "angle": jnp.array(0.8)}
    for seed in range(20):  # as for a bootstrap
        resampled = data + 0.01 * jax.random.normal(jax.random.key(seed + 1), times.shape)
        fit = optx.least_squares(
            lambda params, data: samples(params) - data,
            optx.LevenbergMarquardt(rtol=1e-8, atol=1e-8),
            start,
            args=resampled,
        )
    return fit.value["stiffness"]


RUNS = (
    Run(numpyro_nuts, "numpyro: NUTS, logistic regression, 500 by 8, 1500 samples", 0.1),
    Run(numpyro_schools, "numpyro: NUTS, eight schools, 5000 samples", 0.3),
    Run(blackjax_nuts, "blackjax: NUTS, a Gaussian process of 40 points, 1300 samples", 0.3),
    Run(optax_training, "optax: 2000 steps of Adam, the step jitted, a network of 3 layers", 1e-2),
    Run(diffrax_fit, "diffrax: 20 fits of a pendulum by optimistix", 1e-5),
)

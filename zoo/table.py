"""The rows of the zoo."""

from __future__ import annotations

from .problem import Problem

_BACKSOLVE = "its adjoint equations are a reverse rule alone"
_CHECKPOINTS = "checkpointed loops are a reverse rule alone"
_IMPLICIT = "implicit differentiation is a reverse rule alone"
_LANCZOS = "the adjoint of its Lanczos iteration is a reverse rule alone"

PROBLEMS: tuple[Problem, ...] = (
    Problem(
        "diffrax",
        "recursive_checkpoint",
        "Lotka-Volterra, RecursiveCheckpointAdjoint",
        no_hvp=_CHECKPOINTS,
        hvp_of="direct",
    ),
    Problem(
        "diffrax",
        "ensemble",
        "Lotka-Volterra, four starts, RecursiveCheckpointAdjoint",
        no_hvp=_CHECKPOINTS,
        hvp_of="direct_ensemble",
    ),
    Problem(
        "diffrax",
        "thousand",
        "Lotka-Volterra, 1000 starts, RecursiveCheckpointAdjoint",
        no_hvp=_CHECKPOINTS,
        hvp_of="direct_thousand",
    ),
    Problem("diffrax", "direct", "Lotka-Volterra, DirectAdjoint"),
    Problem("diffrax", "backsolve", "Lotka-Volterra, BacksolveAdjoint", no_hvp=_BACKSOLVE),
    Problem(
        "diffrax",
        "forward_mode",
        "Lotka-Volterra, ForwardMode",
        no_gradient="forward mode alone, by its name",
    ),
    Problem("diffrax", "implicit", "steady state, ImplicitAdjoint"),
    Problem("diffrax", "stiff", "Robertson's reactions, Kvaerno5", no_hvp=_CHECKPOINTS),
    Problem("diffrax", "stochastic", "Ornstein-Uhlenbeck path, virtual Brownian tree", no_hvp=_CHECKPOINTS),
    Problem(
        "diffrax",
        "neural",
        "neural ODE of an equinox MLP, vmapped",
        x64=False,
        no_hvp=_CHECKPOINTS,
        hvp_of="direct_neural",
        tolerance=1e-4,
    ),
    Problem("optimistix", "boundary_value", "boundary value problem by Newton"),
    Problem("optimistix", "curve_fit", "least squares by Levenberg-Marquardt"),
    # JAX's iterations end 1.6e-9 from the minimum, ours, which round otherwise, 3e-11.
    Problem("optimistix", "minimise", "minimum by BFGS", tolerance=1e-6),
    Problem("lineax", "tridiagonal", "implicit heat steps, tridiagonal solves in a scan"),
    Problem("lineax", "conjugate_gradients", "conjugate gradients of a function"),
    Problem("lineax", "least_squares", "ridge regression by QR"),
    Problem("jaxopt", "logistic_regression", "penalties of a logistic regression, L-BFGS", no_hvp=_IMPLICIT),
    # JAX's own gradient changes by 6e-8 where the parameters change by a rounding.
    Problem("jaxopt", "lasso", "penalty of a lasso, proximal gradients", no_hvp=_IMPLICIT, tolerance=1e-6),
    Problem("jaxopt", "unrolled", "gradient descent, unrolled"),
    Problem("optax", "learning_rate", "learning rate of 200 steps of Adam"),
    Problem("optax", "ctc", "connectionist loss of padded sequences"),
    Problem("equinox", "recurrent", "GRU in a scan, vmapped", x64=False, tolerance=1e-4),
    Problem("equinox", "checkpointed_loop", "checkpointed while loop"),
    Problem("equinox", "physics_informed", "Korteweg-de Vries by a network, third derivatives"),
    Problem("flax", "nnx_transformer", "transformer of nnx", x64=False, tolerance=1e-4),
    Problem("flax", "linen_recurrent", "LSTM of linen", x64=False, tolerance=1e-4),
    Problem("flax", "linen_convolutions", "convolutions of linen", x64=False, tolerance=1e-4),
    Problem("haiku", "recurrent", "LSTM of haiku", package="dm-haiku", x64=False, tolerance=1e-4),
    Problem("numpyro", "regression", "hierarchical regression, LKJ prior"),
    Problem("numpyro", "scanned", "stochastic volatility, contrib scan"),
    Problem("numpyro", "enumerated", "hidden Markov model, enumeration in a scan"),
    Problem("numpyro", "variational", "evidence bound of an automatic guide"),
    Problem("blackjax", "hamiltonian", "path of HMC, by step size and start"),
    Problem("blackjax", "langevin", "path of MALA, by step size and start"),
    Problem("flowmc", "spline_flow", "likelihood of a spline flow", package="flowMC"),
    Problem("flowmc", "hamiltonian", "chain of its HMC kernel", package="flowMC"),
    Problem("tinygp", "dense", "likelihood, dense"),
    Problem("tinygp", "large", "likelihood, dense, 2000 points"),
    Problem("tinygp", "quasiseparable", "likelihood, quasiseparable, 400 points"),
    Problem("gpjax", "marginal_likelihood", "marginal likelihood"),
    # JAX's own HVP changes by 6e-9 where the parameters change by a rounding.
    Problem("gpjax", "variational", "sparse variational bound", tolerance=1e-7),
    Problem("dynamax", "hidden_markov", "Gaussian hidden Markov model"),
    Problem("dynamax", "filter_of_logits", "hidden Markov filter, 8 states, 400 steps"),
    Problem("dynamax", "linear_gaussian", "Kalman filter"),
    Problem("dynamax", "extended_kalman", "extended Kalman filter"),
    Problem("distrax", "mixture", "mixture of Gaussians"),
    Problem("distrax", "spline_bijector", "rational quadratic spline"),
    Problem("distrax", "hidden_markov", "hidden Markov model, forward and backward"),
    Problem("flowjax", "coupling", "coupling flow of splines"),
    Problem("flowjax", "autoregressive", "masked autoregressive flow"),
    Problem("interpax", "cubic_spline", "cubic spline by its values"),
    Problem("interpax", "surface", "surface along a curve"),
    Problem("quadax", "adaptive", "adaptive quadrature"),
    Problem("quadax", "romberg", "Romberg's rule"),
    Problem("e3nn_jax", "tensor_product", "equivariant messages, by weights and positions"),
    Problem("jraph", "graph_network", "three rounds of a graph network"),
    Problem("jraph", "attention", "graph attention"),
    Problem("probdiffeq", "fixed_grid", "probabilistic solver on a fixed grid"),
    # JAX's own HVP changes by 1e-7 where the parameters change by a rounding.
    Problem("jaxley", "neuron", "branched Hodgkin-Huxley neuron, 400 steps", tolerance=1e-6),
    Problem("jaxley", "network", "two neurons with a synapse, checkpointed"),
    Problem("jax_md", "constant_energy", "36 soft spheres, 100 steps"),
    # The package has the masses of the chain in float32, and JAX 0.10.2 rounds them otherwise when jitted.
    Problem("jax_md", "thermostat", "Nose-Hoover chain, Lennard-Jones", tolerance=1e-6),
    Problem("jax_md", "relaxation", "100 steps of FIRE"),
    Problem("mujoco_mjx", "arm", "arm of three joints, 40 steps"),
    Problem("brax", "generalized_pendulum", "pendulum on a cart, generalized coordinates"),
    Problem("brax", "spring_pendulum", "pendulum on a cart, springs"),
    Problem("dynamiqs", "pulse", "pulse for a gate, Schroedinger equation", no_hvp=_CHECKPOINTS),
    Problem("dynamiqs", "decay", "damped oscillators, Lindblad equation"),
    Problem("jax_cfd", "spectral", "spectral Navier-Stokes, 64 x 64"),
    Problem("jax_cfd", "finite_volumes", "finite volumes, 32 x 32"),
    Problem("exojax", "emission", "emission spectrum, 30 layers"),
    Problem("jnkepler", "transit_times", "transit times, 800 steps of two planets"),
    Problem("pyhgf", "volatility", "Gaussian filter of three levels, 300 steps"),
    Problem("s2fft", "round_trip", "spherical harmonics and back"),
    Problem("ott", "sinkhorn_implicit", "Sinkhorn, implicit", package="ott-jax"),
    Problem("ott", "sinkhorn_unrolled", "Sinkhorn, 100 iterations", package="ott-jax"),
    Problem("ott", "soft_ranks", "soft ranks", package="ott-jax"),
    Problem("jaxoplanet", "light_curve", "light curve of two planets"),
    Problem("jaxlie", "pose_graph", "ring of 30 poses"),
    Problem("matfree", "log_determinant", "stochastic Lanczos quadrature", no_hvp=_LANCZOS),
)

# The rows that `make test` runs, too: quick ones, whose packages are the extra `watched` in pyproject.toml.
WATCHED = (
    "diffrax.recursive_checkpoint",
    "diffrax.ensemble",
    "optimistix.minimise",
    "lineax.tridiagonal",
    "equinox.checkpointed_loop",
    "numpyro.scanned",
    "blackjax.langevin",
    "jax_md.thermostat",
    "dynamiqs.decay",
    "jaxley.neuron",
)


def named(name: str) -> Problem:
    return next(problem for problem in PROBLEMS if problem.name == name)

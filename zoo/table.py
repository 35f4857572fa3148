"""The rows of the zoo."""

from __future__ import annotations

from .problem import Problem

_BACKSOLVE = "its adjoint equations are a reverse rule alone"
_CHECKPOINTS = "checkpointed loops are a reverse rule alone"

PROBLEMS: tuple[Problem, ...] = (
    Problem("diffrax", "recursive_checkpoint", "Lotka-Volterra, RecursiveCheckpointAdjoint", no_hvp=_CHECKPOINTS),
    Problem("diffrax", "direct", "Lotka-Volterra, DirectAdjoint"),
    Problem("diffrax", "backsolve", "Lotka-Volterra, BacksolveAdjoint", no_hvp=_BACKSOLVE),
    Problem("diffrax", "forward_mode", "Lotka-Volterra, ForwardMode", no_gradient="forward mode alone, by its name"),
    Problem("diffrax", "implicit", "steady state, ImplicitAdjoint"),
    Problem("diffrax", "stiff", "Robertson's reactions, Kvaerno5", no_hvp=_CHECKPOINTS),
    Problem("diffrax", "stochastic", "Ornstein-Uhlenbeck path, virtual Brownian tree", no_hvp=_CHECKPOINTS),
    Problem("diffrax", "neural", "neural ODE of an equinox MLP, vmapped", x64=False, no_hvp=_CHECKPOINTS),
    Problem("optimistix", "boundary_value", "boundary value problem by Newton"),
    Problem("optimistix", "curve_fit", "least squares by Levenberg-Marquardt"),
    Problem("optimistix", "minimise", "minimum by BFGS"),
    Problem("lineax", "tridiagonal", "implicit heat steps, tridiagonal solves in a scan"),
    Problem("lineax", "conjugate_gradients", "conjugate gradients of a function"),
    Problem("lineax", "least_squares", "ridge regression by QR"),
    Problem("jaxopt", "logistic_regression", "penalties of a logistic regression, L-BFGS"),
    Problem("jaxopt", "lasso", "penalty of a lasso, proximal gradients"),
    Problem("jaxopt", "unrolled", "gradient descent, unrolled"),
    Problem("optax", "learning_rate", "learning rate of 200 steps of Adam"),
    Problem("optax", "ctc", "connectionist loss of padded sequences"),
    Problem("equinox", "recurrent", "GRU in a scan, vmapped", x64=False, tolerance=1e-4),
    Problem("equinox", "checkpointed_loop", "checkpointed while loop", no_hvp=_CHECKPOINTS),
    Problem("flax", "nnx_transformer", "transformer of nnx", x64=False, tolerance=1e-4),
    Problem("flax", "linen_recurrent", "LSTM of linen", x64=False, tolerance=1e-4),
    Problem("flax", "linen_convolutions", "convolutions of linen", x64=False, tolerance=1e-4),
    Problem("haiku", "recurrent", "LSTM of haiku", package="dm-haiku", x64=False, tolerance=1e-4),
)


def named(name: str) -> Problem:
    return next(problem for problem in PROBLEMS if problem.name == name)

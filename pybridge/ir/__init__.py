"""Programs: types, equations, text and schema. Imports neither JAX nor any other layer but errors."""

from . import pickling  # noqa: F401  # Programs can be pickled as soon as there are any

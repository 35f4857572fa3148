"""Every operation at every dtype, compared with JAX: `python -m tests.dtypes [PATTERN ...]`."""

"""Random Programs: typed equations over the table of primitives, at random inputs."""

from .programs import MAKERS, Sample, at_random, sample

__all__ = ["MAKERS", "Sample", "at_random", "sample"]

"""Random Programs: typed equations over the table of primitives, at random inputs."""

from .programs import ENDLESS, MAKERS, Sample, at_random, sample

__all__ = ["ENDLESS", "MAKERS", "Sample", "at_random", "sample"]

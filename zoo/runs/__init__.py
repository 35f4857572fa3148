"""Whole runs as users have them: samplers, training loops, fits, with one function bridged or none."""

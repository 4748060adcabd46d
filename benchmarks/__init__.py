"""Experiments behind the figures in ``docs/results``; run as ``python -m benchmarks.NAME``."""

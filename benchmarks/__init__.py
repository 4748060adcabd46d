"""Experiments behind the figures in ``docs/results.md``; run as ``python -m benchmarks.NAME``."""

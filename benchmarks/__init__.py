"""What the service costs, measured from outside: `python -m benchmarks.pipeline`, `python -m benchmarks.numerics`."""

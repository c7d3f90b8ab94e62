"""Formulas that no worker computes: of methods that a replay compares, and of the paper, for its simulations."""

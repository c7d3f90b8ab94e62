"""Formulas of the paper that the worker does not need: the simulations compare them."""

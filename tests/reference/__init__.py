"""Formulas that only tests need: those of the paper's errata, and slow twins."""

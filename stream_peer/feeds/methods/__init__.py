"""Variants of the mathematics."""

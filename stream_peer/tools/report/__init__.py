"""The report: one self-contained page about what the output topics said."""

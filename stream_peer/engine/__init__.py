"""Decisions: (state, record) -> effects. Pure: no clock, no file, no log, no hidden dice.

``stage`` says what a stage is; ``question`` folds histories into rounds, ``feed`` rounds into facts, sums and
outputs; ``state_log`` is the changelog as data: two versions, claims, recovery; ``weight_terms`` says why weights
moved.
"""

"""Scenes that the demo models are trained and measured on, made by seed: nothing is downloaded.

A scene is a function of (seed, index) alone. Training draws from one seed, held-out sets from others, so that no scene is
in both.
"""

# What the held-out sets are drawn from. Trainings are seeded with small numbers.
HELD_OUT_SEED = 20_000

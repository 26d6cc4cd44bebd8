"""Generated scenes on which the demo models are trained and measured: nothing is downloaded.

A scene depends only on (seed, index). Training and held-out sets use different seeds, so that no scene is in both.
"""

# Seed of the held-out sets. Trainings use small numbers as seeds.
HELD_OUT_SEED = 20_000

"""Draws a sheet of scenes for inspection.

    python -m models.reference.scenes objects|stereo|volumes|shapes [--seed 1] [--count 18] [--output sheet.png]
"""

import argparse

from models.reference.scenes.sheet import KINDS, sheet


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=18)
    parser.add_argument("--output", default="sheet.png")
    options = parser.parse_args()
    sheet(options.kind, options.seed, options.count).save(options.output)


if __name__ == "__main__":
    main()

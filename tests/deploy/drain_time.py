"""How long a drain may take beside what its flags say."""

import pathlib
import re

HEADER = pathlib.Path(__file__).parents[2] / "server" / "lifecycle" / "drain.h"
SECONDS = {"Milliseconds": 0.001, "Seconds": 1}


def beside_the_flags():
    """The seconds of the drain's states that no flag sets: until GOAWAY is heard, and to close."""
    text = HEADER.read_text()

    def seconds(member):
        unit, number = re.search(rf"absl::Duration {member} = absl::(\w+)\((\d+)\);", text).groups()
        return SECONDS[unit] * int(number)

    return seconds("go_away") + seconds("closing")

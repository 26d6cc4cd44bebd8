"""Checks that ctest knows every test: a file that is not registered is never run."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent


def test_every_test_of_this_folder_is_registered():
    text = (HERE / "CMakeLists.txt").read_text()
    loops = {f"e2e/{name}_test.py" for loop in re.findall(r"foreach\(about ([^)]*)\)\n  saccade_python_test", text)
             for name in loop.split()}
    alone = set(re.findall(r"saccade_python_test\(\S+ ([a-z0-9_/]+_test\.py)", text))
    # tests/bulk has engines of its own: ./dev test-bulk runs them all.
    there = {str(path.relative_to(HERE)) for path in HERE.rglob("*_test.py")} - {
        str(path.relative_to(HERE)) for path in (HERE / "bulk").rglob("*_test.py")}
    assert there == loops | alone

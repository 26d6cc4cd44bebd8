"""Writes docs/reference: the daemon's flags, metrics and limits, as the built program and its sources have them; and in
docs/quickstart.md, docs/your-own-model.md and client/README.md what their commands print, with the picture of the demo.

Called by ./dev docs, which has built everything. tests/e2e/reference_test.py fails if the committed pages differ."""

import pathlib
import tempfile

from tools.reference import demo, own_model, readme, session, shadow
from tools.reference.pages import FOLDER, pages


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages(pathlib.Path(folder)).items():
            (FOLDER / name).write_text(text)
            print(f"wrote {FOLDER.name}/{name}")
    session.write()
    demo.write()
    own_model.write()
    readme.write()
    shadow.write()
    print(f"wrote {session.PAGE.name}, {own_model.PAGE.name}, {shadow.PAGE.name} and {readme.README.parent.name}/{readme.README.name}, {demo.SHEET.name}")


if __name__ == "__main__":
    main()

"""Markdown tables of the reports and generated pages."""


def table(head, rows, aligned=False):
    """Returns a table without a newline at its end. `head` and each of `rows` are lists of cells of any type; a pipe inside a
    cell is escaped. With `aligned`, cells are padded, for reports that are also read in a terminal."""
    lines = [[str(cell).replace("|", "\\|") for cell in cells] for cells in (head, *rows)]
    rule = ["---"] * len(lines[0])
    if aligned:
        widths = [max(3, *(len(cell) for cell in column)) for column in zip(*lines)]
        lines = [[cell.ljust(width) for cell, width in zip(cells, widths)] for cells in lines]
        rule = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (lines[0], rule, *lines[1:]))

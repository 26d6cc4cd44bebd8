"""Draws the pictures of all results on one sheet."""

from PIL import Image, ImageDraw, ImageFont

CELL, LINE, COLUMNS = 240, 34, 5


def fitting(line, pen, font):
    """As many of the line's parts, which commas separate, as there is room for. A part is cut only if it is the first."""
    parts = line.split(", ")
    for count in range(len(parts), 0, -1):
        line = ", ".join(parts[:count]) + ("" if count == len(parts) else ", …")
        if pen.textlength(line, font) <= CELL:
            return line
    while pen.textlength(line, font) > CELL:
        line = line.rstrip("…, ")[:-1] + "…"
    return line


def draw(pictures, path):
    """`pictures` are pairs of a path and the two lines of text below it."""
    columns = min(COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * (CELL + 12) + 12, rows * (CELL + LINE + 12) + 12), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
    for place, (file, lines) in enumerate(pictures):
        x, y = 12 + place % columns * (CELL + 12), 12 + place // columns * (CELL + LINE + 12)
        with Image.open(file) as opened:
            picture = opened.convert("RGB")
        scale = min(CELL / picture.width, CELL / picture.height)
        picture = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
        sheet.paste(picture, (x + (CELL - picture.width) // 2, y + (CELL - picture.height) // 2))
        for number, line in enumerate(lines):
            pen.text((x, y + CELL + 2 + 16 * number), fitting(line, pen, font), "black", font)
    sheet.save(path)

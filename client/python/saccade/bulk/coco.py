"""Writes the parts of a detection job as one JSON file in COCO's form. Memory does not grow with the job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import IO, Any

from saccade.bulk.failures import BulkError, not_written
from saccade.bulk.plan import Plan
from saccade.masks import runs_of

_ROWS_AT_ONCE = 256
# Least score of a keypoint that counts as visible.
_VISIBLE_FROM = 0.5


def _rows(made: Plan) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet

    for entry in made.entries:
        with pyarrow.parquet.ParquetFile(made.part(entry.id)) as part:
            for batch in part.iter_batches(_ROWS_AT_ONCE):
                yield from batch.to_pylist()


def check(schema: Any) -> None:
    """Rejects the parts' schema if COCO's form cannot hold their results."""
    if "box" not in [field.name for field in schema.field("result").type.value_type]:
        raise BulkError("COCO JSON holds detections; write this model's results to a folder, as Parquet files")


def _keypoints(points: list[dict[str, float]]) -> list[float]:
    """COCO's x, y, v of each point: v is 2 (visible) from a score of 0.5 on, 1 below, and 0 for a point without a score,
    whose x and y are 0 then."""
    flat: list[float] = []
    for point in points:
        visible = 2 if point["score"] >= _VISIBLE_FROM else int(point["score"] > 0)
        flat += [point["x"], point["y"], visible] if visible else [0, 0, 0]
    return flat


def _annotation(index: int, number: int, found: dict[str, Any]) -> dict[str, Any]:
    left, top, right, bottom = found["box"]
    width, height = right - left, bottom - top
    made = {"id": number, "image_id": index, "category_id": found["class"], "score": found["score"],
            "bbox": [left, top, width, height], "area": width * height, "iscrowd": 0}
    if found["mask"] is not None:
        made["segmentation"] = found["mask"]
        # The runs are outside the mask and inside it in turn.
        made["area"] = sum(runs_of(found["mask"]["counts"])[1::2])
    if found["keypoints"]:
        made["keypoints"] = _keypoints(found["keypoints"])
        made["num_keypoints"] = sum(visible > 0 for visible in made["keypoints"][2::3])
    return made


def _list(file: IO[str], name: str, values: Iterator[Any]) -> None:
    file.write(f',\n"{name}": [')
    for number, value in enumerate(values):
        file.write(("," if number else "") + "\n" + json.dumps(value))
    file.write("\n]")


def write(made: Plan, path: str) -> None:
    """`images` has the inputs with an answer, `errors` those without."""
    import pyarrow.parquet

    # Versions of this package that did not check before they sent anything may have left parts.
    check(pyarrow.parquet.read_schema(made.part(made.entries[0].id)))
    categories: dict[int, str] = {}

    def images() -> Iterator[dict[str, Any]]:
        for row in _rows(made):
            if row["error_code"] is None:
                yield {"id": row["index"], "file_name": row["key"], "width": row["width"], "height": row["height"]}

    def annotations() -> Iterator[dict[str, Any]]:
        number = 0
        for row in _rows(made):
            for found in row["result"] or ():
                number += 1
                categories[found["class"]] = found["label"]
                yield _annotation(row["index"], number, found)

    def errors() -> Iterator[dict[str, Any]]:
        for row in _rows(made):
            if row["error_code"] is not None:
                yield {"id": row["index"], "file_name": row["key"], "code": row["error_code"], "error": row["error"]}

    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write('{"info": ' + json.dumps({"description": f"detections of model {made.question.model}"}))
            _list(file, "images", images())
            _list(file, "annotations", annotations())
            _list(file, "errors", errors())
            named = ({"id": index, "name": label or str(index)} for index, label in sorted(categories.items()))
            _list(file, "categories", named)
            file.write("}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise not_written("the results", path, error) from error

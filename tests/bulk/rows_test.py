"""The columns of each task's results, from answers of a stand-in."""

import dataclasses
import json

import numpy
import pycocotools.coco
import pycocotools.mask
import pytest

from contents import check_each_once, rows_of, write_parquet
from saccade.bulk import BulkError, run
from saccade.bulk.worker import Limits
from saccade.masks import encode_values
from saccade.v1 import vision_pb2 as pb
from sender_test import job_of

# x, y and score.
POINTS = [(3.5, 4.25, 0.75), (-2.0, 40.5, 0.25), (7.0, 8.0, 0.0), (1.5, 2.5, 0.5)]


def person(answer, content):
    """A person with keypoints, and a ball without."""
    answer.picture_width, answer.picture_height = 48, 32
    for label, points in (("person", POINTS), ("ball", [])):
        found = answer.detections.detections.add(score=0.5, class_index=len(label), label=label)
        found.box.x_max, found.box.y_max = 10, 20
        for x, y, score in points:
            found.keypoints.add(x=x, y=y, score=score)


def test_detections_have_their_keypoints(tmp_path, stand_in):
    stand_in.task, stand_in.fill = "detection", person
    run(job_of(tmp_path, stand_in, count=3))
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 3
    for row in rows:
        first, second = row["result"]
        assert [(one["x"], one["y"], one["score"]) for one in first["keypoints"]] == POINTS
        assert second["keypoints"] == []


def test_keypoints_are_coco_s(tmp_path, stand_in):
    stand_in.task, stand_in.fill = "detection", person
    output = tmp_path / "found.json"
    job = job_of(tmp_path, stand_in, count=1)
    run(dataclasses.replace(job, output=str(output)))
    first, second = pycocotools.coco.COCO(str(output)).loadAnns([1, 2])
    assert first["keypoints"] == [3.5, 4.25, 2, -2.0, 40.5, 1, 0, 0, 0, 1.5, 2.5, 2]
    assert first["num_keypoints"] == 3
    assert "keypoints" not in second and "num_keypoints" not in second


def test_the_area_of_an_annotation_is_that_of_its_mask(tmp_path, stand_in):
    inside = numpy.zeros((32, 48), bool)
    inside[4:14, 5:25] = True
    inside[6:8, 7:9] = False

    def fill(answer, content):
        person(answer, content)
        first = answer.detections.detections[0]
        first.mask.height, first.mask.width = inside.shape
        first.mask.counts, first.mask.area = encode_values(inside)[True], int(inside.sum())

    stand_in.task, stand_in.fill = "detection", fill
    output = tmp_path / "found.json"
    run(dataclasses.replace(job_of(tmp_path, stand_in, count=1), output=str(output)))
    first, second = pycocotools.coco.COCO(str(output)).loadAnns([1, 2])
    assert first["area"] == inside.sum() == pycocotools.mask.area(first["segmentation"])
    # Without a mask it is the box's.
    assert "segmentation" not in second and second["area"] == 10 * 20


@pytest.mark.parametrize("task", ["segmentation", "embedding"])
@pytest.mark.parametrize(
    ("options", "said"),
    [({"score_threshold": 0.0}, "--score-threshold"), ({"top_k": 3}, "--top-k"),
     ({"score_threshold": 0.5, "top_k": 3}, "--score-threshold and --top-k")],
)
def test_options_without_an_effect_on_the_task_are_rejected_before_anything_is_sent(tmp_path, stand_in, task, options, said):
    stand_in.task = task
    job = job_of(tmp_path, stand_in, count=1)
    with pytest.raises(BulkError) as failure:
        run(dataclasses.replace(job, question=dataclasses.replace(job.question, **options)))
    assert str(failure.value).startswith(f"{said} would have no effect: model any has the task {task}; expected one of "
                                         "classification, detection, actions; leave it out")
    assert not stand_in.attempts


def test_options_for_scores_are_taken_where_there_are_scores(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in, count=1)
    assert run(dataclasses.replace(job, question=dataclasses.replace(job.question, score_threshold=0.5, top_k=3))).failed == 0


@pytest.mark.parametrize("size", [(20, 30), (300, 400)], ids=["small", "large"])
def test_areas_have_the_masks_of_their_classes(tmp_path, stand_in, size):
    values = numpy.random.default_rng(3).integers(0, 4, size).astype(numpy.uint8)

    def fill(answer, content):
        assert len(content) in (1, 2)
        answer.picture_height, answer.picture_width = size
        found = answer.segmentation
        found.height, found.width = size
        found.format, found.label_map = pb.SegmentationOptions.RAW, values.tobytes()
        for value in range(4):
            found.areas.add(class_index=value, label=str(value), pixels=int((values == value).sum()), fraction=0.25)

    stand_in.task, stand_in.fill = "segmentation", fill
    run(job_of(tmp_path, stand_in, count=2))
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 2
    for row in rows:
        assert [area["class"] for area in row["result"]] == [0, 1, 2, 3]
        for area in row["result"]:
            assert (pycocotools.mask.decode(area["mask"]) == (values == area["class"])).all()


@pytest.mark.parametrize("most", [1, 2, 64])
def test_shards_of_any_length_are_written_whole(tmp_path, stand_in, most):
    # More than the 256 rows that are written at a time, and large inputs among small ones: more than the 8 MiB that are read at a time.
    pictures = [b"x" * (3 << 20 if 300 <= number < 304 else 1 + number % 5) for number in range(600)]
    path = write_parquet(tmp_path / "pictures.parquet", {"image": pictures}, 600)
    job = dataclasses.replace(job_of(tmp_path, stand_in, count=0, limits=Limits(max_in_flight=most)), inputs=[str(path)])
    assert run(job).failed == 0
    rows = rows_of(tmp_path / "out")
    check_each_once(rows, 600)
    for row, picture in zip(sorted(rows, key=lambda one: one["index"]), pictures):
        assert row["result"][0]["class"] == len(picture)


def test_embeddings_are_lists_of_values(tmp_path, stand_in):
    stand_in.task = "embedding"
    stand_in.fill = lambda answer, content: answer.embedding.values.extend([0.5, -0.25, len(content)])
    run(job_of(tmp_path, stand_in, count=3))
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 3
    for row in rows:
        assert row["result"] == [{"values": [0.5, -0.25, row["index"] + 1]}]


def test_embeddings_are_not_coco_s(tmp_path, stand_in):
    stand_in.task = "embedding"
    stand_in.fill = lambda answer, content: answer.embedding.values.append(1)
    job = job_of(tmp_path, stand_in, count=1)
    with pytest.raises(BulkError, match="COCO JSON holds detections"):
        run(dataclasses.replace(job, output=str(tmp_path / "found.json")))


@pytest.mark.parametrize(
    ("task", "command"), [("depth", "saccade depth"), ("stereo", "saccade stereo"), ("restoration", "saccade restore")]
)
def test_maps_and_volumes_are_left_to_other_commands(tmp_path, stand_in, task, command):
    stand_in.task = task
    with pytest.raises(BulkError, match=f"has the task {task}.*{command} -o FOLDER"):
        run(job_of(tmp_path, stand_in, count=1))


def test_a_job_whose_parts_have_other_columns_is_not_gone_on_with(tmp_path, stand_in):
    job = job_of(tmp_path, stand_in, count=1)
    run(job)
    path = tmp_path / "out" / "_job" / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    with pytest.raises(BulkError, match="holds a job with other format: 1, now 2"):
        run(job)

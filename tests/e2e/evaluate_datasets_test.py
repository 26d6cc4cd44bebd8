"""The data sets of `saccade evaluate`: each is read from a tiny folder in the real one's layout, its answers are compared with
the truth, and what is wrong with a folder is said."""

import contextlib
import dataclasses
import os
import pickle
import shutil

import numpy
import pytest

import evaluation_folders as folders


@pytest.fixture(scope="module")
def types(saccade):
    from saccade import types

    return types


@pytest.fixture
def opened(saccade, tmp_path):
    """opened(name, options...): the data set in the test's folder."""
    from saccade.evaluate.dataset import Options
    from saccade.evaluate.job import DATASETS

    return lambda name, **options: DATASETS[name](tmp_path, Options(**options))


@contextlib.contextmanager
def refused(*words):
    from saccade.evaluate import EvaluateError

    with pytest.raises(EvaluateError) as error:
        yield
    for word in words:
        assert word in str(error.value), f"{word!r} is not in {str(error.value)!r}"


def values(figures):
    return {figure.name: pytest.approx(figure.value) for figure in figures}


def classified(types, *indices):
    classes = tuple(types.ScoredClass(index, "", 0.1, 0.0) for index in indices)
    return folders.answer(types.Classification, types, classes=classes)


def segmented(types, label_map):
    return folders.answer(types.Segmentation, types, label_map=label_map, areas=())


def matched(types, disparity):
    return folders.answer(types.Disparity, types, disparity=disparity.astype(numpy.float32), min=0, max=0, mean=0)


def test_imagenet_in_folders_of_synsets(types, opened, tmp_path):
    folders.imagenet(tmp_path)
    dataset, model = opened("imagenet"), folders.model(types, "classification", 3)
    samples = dataset.samples(model)
    assert [(sample.key.split("/")[0], sample.truth) for sample in samples] == [
        (synset, number) for number, synset in enumerate(folders.SYNSETS) for _ in range(2)]
    assert dataset.request(samples[0], model).message().encoded == samples[0].files[0].read_bytes()
    assert dataset.request(samples[0], model).message().version == 3
    records = {sample.key: dataset.record(sample, classified(types, 1, 0)) for sample in samples}
    assert values(dataset.figures(samples, records)) == {"top-1": 100 / 3, "top-5": 200 / 3}
    with refused("has 1000 classes", "imagenet has 3"):
        dataset.samples(folders.model(types, "classification", 1000))


def test_imagenet_as_kaggle_has_it(types, opened, tmp_path):
    folders.imagenet_of_kaggle(tmp_path)
    samples = opened("imagenet").samples(folders.model(types, "classification", 3))
    assert [(sample.key[-1], sample.truth) for sample in samples] == [("1", 2), ("2", 0)]
    (tmp_path / "ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000002.JPEG").unlink()
    with refused("00000002.JPEG is missing", "LOC_val_solution.csv:3 names"):
        opened("imagenet").samples(folders.model(types, "classification", 3))
    folders.text(tmp_path / "LOC_synset_mapping.txt", "n01440764 tench")
    with refused("n02979186", "LOC_synset_mapping.txt lacks"):
        opened("imagenet").samples(folders.model(types, "classification", 1))


def test_flat_pictures_of_imagenet_have_no_classes(types, opened, tmp_path):
    folders.picture(tmp_path / "val" / "ILSVRC2012_val_00000001.JPEG")
    with refused("no folders of synsets", "sort flat pictures"):
        opened("imagenet").samples(folders.model(types, "classification", 3))


@pytest.mark.parametrize("write", [folders.cifar100_python, folders.cifar100_binary])
def test_cifar100(types, opened, tmp_path, write):
    write(tmp_path)
    dataset, model = opened("cifar100"), folders.model(types, "classification", 100)
    samples = dataset.samples(model)
    assert [sample.truth for sample in samples] == [5, 99, 0]
    raw = dataset.request(samples[1], model).message().raw
    planes = folders.cifar_pixels(3)[1].reshape(3, 32, 32)
    assert (raw.width, raw.height) == (32, 32)
    assert numpy.array_equal(numpy.frombuffer(raw.pixels, numpy.uint8).reshape(32, 32, 3), planes.transpose(1, 2, 0))
    # A model whose labels have the names in another order.
    labels = folders.FINE[::-1]
    assert [one.truth for one in dataset.samples(folders.model(types, "classification", 100, labels))] == [94, 0, 99]
    with refused("has 10 classes"):
        dataset.samples(folders.model(types, "classification", 10))


def test_a_pickle_that_would_run_code_is_not_run(types, opened, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    folders.cifar100_python(tmp_path)
    (tmp_path / "cifar-100-python" / "test").write_bytes(pickle.dumps({"data": Evil()}))
    with refused("it asks for posix.mkdir"):
        opened("cifar100").samples(folders.model(types, "classification", 100))
    assert not (tmp_path / "made").exists()


def test_damaged_files_of_cifar100(types, opened, tmp_path):
    folders.cifar100_binary(tmp_path)
    path = tmp_path / "cifar-100-binary" / "test.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with refused("has 9221 bytes", "a multiple of 3074"):
        opened("cifar100").samples(folders.model(types, "classification", 100))
    shutil.rmtree(path.parent)
    folders.cifar100_python(tmp_path, labels=(5, 100))
    with refused("has the label [100]"):
        opened("cifar100").samples(folders.model(types, "classification", 100))
    (tmp_path / "cifar-100-python" / "test").write_bytes(b"\x80\x02}no pickle")
    with refused("cannot be read"):
        opened("cifar100").samples(folders.model(types, "classification", 100))


def test_voc(types, opened, tmp_path):
    folders.voc(tmp_path)
    dataset, model = opened("voc"), folders.model(types, "segmentation", 21)
    samples = dataset.samples(model)
    assert [sample.key for sample in samples] == ["2007_000033", "2007_000042"]
    label_map = numpy.zeros((12, 16), numpy.uint8)
    label_map[:4] = 20
    records = {sample.key: dataset.record(sample, segmented(types, label_map)) for sample in samples}
    # First: 64 pixels of class 0 answered 20, 64 of class 1 answered 0, 64 ignored. Second: 64 of 20 right, 64 of 20
    # answered 0, 64 of 0 right. Class 0: 64 of 64 + 64 + 64 + 64; class 1: none; class 20: 64 of 64 + 64 + 64.
    expected = {"mIoU": 100 * (1 / 4 + 0 + 1 / 3) / 3, "pixel accuracy": 100 * 2 / 5, "IoU, background": 25,
                "IoU, aeroplane": 0, "IoU, tv monitor": 100 / 3}
    assert values(dataset.figures(samples, records)) == expected
    with refused("is a map of (12, 16)", "has (6, 16)"):
        dataset.record(samples[0], segmented(types, label_map[:6]))
    inner = tmp_path / "VOCdevkit" / "VOC2012"
    (inner / "SegmentationClass" / "2007_000042.png").unlink()
    with refused("2007_000042.png is missing", "the labels of 2007_000042.jpg"):
        dataset.samples(model)
    folders.text(inner / "ImageSets" / "Segmentation" / "val.txt", "../../secret")
    with refused("'../../secret'", "expected a picture's name"):
        dataset.samples(model)


def test_colours_are_no_labels(types, opened, tmp_path):
    folders.voc(tmp_path)
    dataset, model = opened("voc"), folders.model(types, "segmentation", 21)
    samples = dataset.samples(model)
    folders.picture(samples[0].files[1])
    with refused("pixels of mode RGB", "one channel"):
        dataset.record(samples[0], segmented(types, numpy.zeros((12, 16), numpy.uint8)))


def test_cityscapes(types, opened, tmp_path):
    folders.cityscapes(tmp_path)
    dataset, model = opened("cityscapes"), folders.model(types, "segmentation", 19)
    samples = dataset.samples(model)
    assert [sample.key for sample in samples] == ["lindau/lindau_000000_000019", "munster/munster_000001_000019"]
    # Everything is road: of each picture 64 pixels are, 32 sky, 32 bicycle, and 64 are not evaluated.
    road = segmented(types, numpy.zeros((12, 16), numpy.uint8))
    records = {sample.key: dataset.record(sample, road) for sample in samples}
    assert values(dataset.figures(samples, records)) == {
        "mIoU": 50 / 3, "pixel accuracy": 50, "IoU, road": 50, "IoU, sky": 0, "IoU, bicycle": 0}
    samples[1].files[1].unlink()
    with refused("munster_000001_000019_gtFine_labelIds.png is missing"):
        dataset.samples(model)


def test_kitti_2015(types, opened, tmp_path):
    folders.kitti(tmp_path)
    dataset = opened("kitti")
    samples = dataset.samples(folders.model(types, "stereo"))
    assert [sample.key for sample in samples] == ["000000_10", "000001_10"], "not 000000_11, which has no disparity"
    right, far = numpy.full((12, 16), 10.5), numpy.full((12, 16), 10.5)
    far[:3] = 14.5
    records = {"000000_10": dataset.record(samples[0], matched(types, right)),
               "000001_10": dataset.record(samples[1], matched(types, far))}
    # 96 pixels a picture have a disparity; in the second one, the 24 of the vehicle are off by 4.
    assert values(dataset.figures(samples, records)) == {
        "D1-all": 12.5, "3-px, all": 12.5, "EPE, all": 0.5, "density, all": 100, "D1-noc": 25, "3-px, noc": 25,
        "EPE, noc": 1, "density, noc": 100, "D1-bg": 0, "D1-fg": 50}


@pytest.mark.parametrize("left", ["colored", "image"])
def test_kitti_2012(types, opened, tmp_path, left):
    folders.kitti(tmp_path, (f"{left}_0", f"{left}_1", "disp_occ", "disp_noc"), objects=False)
    dataset = opened("kitti")
    samples = dataset.samples(folders.model(types, "stereo"))
    records = {one.key: dataset.record(one, matched(types, numpy.full((12, 16), numpy.nan))) for one in samples}
    found = values(dataset.figures(samples, records))
    assert found["3-px, all"] == 100 and found["density, all"] == 0 and "EPE, all" not in found


def test_folders_that_are_not_kitti_s(types, opened, tmp_path):
    folders.kitti(tmp_path)
    shutil.rmtree(tmp_path / "training" / "image_3")
    with refused("none of KITTI's layouts", "image_2, image_3, disp_occ_0"):
        opened("kitti").samples(folders.model(types, "stereo"))


@pytest.mark.parametrize("endian", ["<", ">"])
def test_float_maps_have_their_lowest_row_first(types, opened, tmp_path, endian):
    from saccade.evaluate import files

    values = numpy.arange(6.0).reshape(2, 3)
    folders.pfm(tmp_path / "a.pfm", values, endian)
    assert numpy.array_equal(files.pfm(tmp_path / "a.pfm"), values)


@pytest.mark.parametrize(("content", "said"), [
    (b"PF\n3 2\n-1.0\n" + bytes(72), "does not start like a float map"),
    (b"Pf\n3 2\n-1.0\n" + bytes(23), "has 23 bytes of numbers; expected 4 x 3 x 2"),
    (b"Pf\n999999999 999999999\n-1.0\n", "has 0 bytes of numbers"),
    (b"", "does not start like a float map"),
])
def test_damaged_float_maps(saccade, tmp_path, content, said):
    from saccade.evaluate import files

    (tmp_path / "a.pfm").write_bytes(content)
    with refused(said):
        files.pfm(tmp_path / "a.pfm")


@pytest.mark.parametrize("variant", ["finalpass", "cleanpass"])
def test_scene_flow(types, opened, tmp_path, variant):
    folders.scene_flow(tmp_path, variant)
    dataset, model = opened("sceneflow"), folders.model(types, "stereo", options={"max_disparity": "192"})
    samples = dataset.samples(model)
    assert [sample.key for sample in samples] == [f"frames_{variant}/{letter}/0000/left/0006" for letter in "AB"]
    message = dataset.request(samples[0], model).message()
    assert message.stereo.right.encoded == samples[0].files[1].read_bytes()
    records = {samples[0].key: dataset.record(samples[0], matched(types, numpy.full((12, 16), 9.0))),
               samples[1].key: dataset.record(samples[1], matched(types, numpy.full((12, 16), 12.0)))}
    # Off by 1 and by 4 at 128 pixels each.
    assert values(dataset.figures(samples, records)) == {"EPE": 2.5, "EPE, mean of pictures": 2.5, "3-px": 50}
    wide = dataset.samples(folders.model(types, "stereo", options={"max_disparity": "256"}))
    assert dataset.record(wide[0], matched(types, numpy.full((12, 16), 9.0)))[0] == 192
    with refused("frames_other"):
        opened("sceneflow", variant="other").samples(model)


def actions_of(types, *found):
    actions = tuple(types.Action(start, end, score, index, "", 0, 0) for index, start, end, score in found)
    return folders.answer(types.Actions, types, actions=actions, frames=4, frames_per_second=5)


def test_thumos14(types, opened, tmp_path):
    folders.thumos14(tmp_path, frames=10)
    dataset = opened("thumos14", frames_per_second=5.0)
    model = folders.model(types, "actions", 21, max_frames=4)
    samples = dataset.samples(model)
    # Windows of 4 of 10 frames, each begins 2 after the one before; the last ends with the video.
    assert [sample.key for sample in samples] == [
        f"video_test_000000{video}@{first}" for video in (4, 6) for first in (0, 2, 4, 6)]
    message = dataset.request(samples[1], model).message()
    assert message.clip.frames.frames_per_second == 5 and len(message.clip.frames.pictures) == 4
    assert message.clip.frames.pictures[0].encoded == samples[1].files[0].read_bytes()
    nothing = actions_of(types)
    records = {sample.key: dataset.record(sample, nothing) for sample in samples}
    diving = folders.ACTIONS.index("Diving") + 1
    # The window at frame 2 starts at 0.4 s: -0.2 and 0.2 in it are 0.2 and 0.6 of the video.
    records["video_test_0000004@2"] = dataset.record(samples[1], actions_of(types, (diving, -0.2, 0.2, 0.9)))
    assert records["video_test_0000004@2"] == [[diving - 1, pytest.approx(0.2), pytest.approx(0.6), 0.9]]
    # The same action again, in an overlapping window, is dropped; an action of another class is wrong.
    records["video_test_0000004@0"] = dataset.record(samples[0], actions_of(types, (diving, 0.2, 0.6, 0.8), (1, 5, 6, 0.5)))
    found = values(dataset.figures(samples, records))
    # Diving: one of two true segments; of the other 19 classes none.
    assert found == {f"mAP@{threshold}": 100 * 0.5 / 20 for threshold in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)}


def test_folders_that_are_not_thumos14_s(types, opened, tmp_path):
    model = folders.model(types, "actions", 21, max_frames=4)
    with refused("has no BaseballPitch_test.txt"):
        opened("thumos14").samples(model)
    folders.thumos14(tmp_path)
    with refused("has 5 classes", "expected labels with all 20 names, or 21 classes"):
        opened("thumos14").samples(folders.model(types, "actions", 5, max_frames=4))
    shutil.rmtree(tmp_path / "frames" / "video_test_0000006")
    with refused("has no frames", "ffmpeg -i video_test_0000006.mp4 -r 25"):
        opened("thumos14").samples(model)
    folders.text(tmp_path / "annotation" / "Diving_test.txt", "video_test_0000004 5 4")
    with refused("Diving_test.txt:1", "a later end in seconds"):
        opened("thumos14").samples(model)


def restored(types, volume):
    return folders.answer(types.Restoration, types, volume=volume.astype(numpy.float32), min=0, max=0)


def test_care(types, opened, tmp_path):
    folders.care(tmp_path)
    dataset, model = opened("care"), folders.model(types, "restoration")
    samples = dataset.samples(model)
    assert [sample.key for sample in samples] == [
        f"condition_{condition}/EXP278_{name}" for condition in (1, 2) for name in "ab"]
    request = dataset.request(samples[0], model)
    assert (request.volume, request.voxel_type, request.version) == (samples[0].files[0], "float32", 3)
    truth = folders.care_volume(0)
    perfect = dataset.record(samples[0], restored(types, truth))
    assert perfect["NRMSE"] < 1e-6 and perfect["SSIM"] == pytest.approx(1) and perfect["PSNR"] > 120
    # Ten times the truth is as good: CARE scales it back.
    assert dataset.record(samples[0], restored(types, truth * 10.0))["NRMSE"] < 1e-6
    with refused("has the shape (3, 14, 15)", "has (1, 14, 15)"):
        dataset.record(samples[0], restored(types, truth[:1]))
    records = {sample.key: {"PSNR": number, "SSIM": 0.5, "NRMSE": 0.1} for number, sample in enumerate(samples)}
    found = values(dataset.figures(samples, records))
    assert (found["PSNR"], found["PSNR, condition_1"], found["PSNR, condition_2"]) == (1.5, 0.5, 2.5)
    assert [one.key for one in opened("care", variant="condition_2").samples(model)] == [
        "condition_2/EXP278_a", "condition_2/EXP278_b"]
    (tmp_path / "test_data" / "condition_2" / "EXP278_b.tif").unlink()
    with refused("condition_2/EXP278_b.tif is missing"):
        dataset.samples(model)


def detected(types, *found):
    from saccade.masks import Mask, encode_values

    rows = []
    for index, score, (left, top, right, bottom) in found:
        inside = numpy.zeros((64, 96), bool)
        inside[top:bottom, left:right] = True
        mask = Mask(64, 96, encode_values(inside)[True], int(inside.sum()))
        rows.append(types.Detection(types.Box(left, top, right, bottom), score, index, "", mask))
    return folders.answer(types.Detections, types, height=64, width=96, detections=tuple(rows))


def test_coco(types, opened, tmp_path):
    folders.coco(tmp_path)
    dataset, model = opened("coco"), folders.model(types, "detection", 14)
    samples = dataset.samples(model)
    assert [sample.key for sample in samples] == ["1", "2", "3"]
    # torchvision's numbers: class 13 is category 13. Two of three objects: precision 1 up to a recall of 2/3, which are
    # 67 of COCO's 101 levels.
    one, none = detected(types, (13, 0.9, (8, 8, 48, 48))), detected(types)
    records = {sample.key: dataset.record(sample, answer) for sample, answer in zip(samples, (one, one, none))}
    found = values(dataset.figures(samples, records))
    assert found["box AP"] == found["mask AP"] == found["box AP50"] == 100 * 67 / 101
    assert found["box AP, medium"] == 100 * 67 / 101 and "box AP, large" not in found
    # Pictures without an answer do not count as pictures without detections.
    del records["3"]
    assert values(dataset.figures(samples, records))["box AP"] == 100
    # Off by four pixels: an overlap of 36 / 44 = 0.818 counts at 0.50 to 0.80.
    records = {"1": dataset.record(samples[0], detected(types, (13, 0.9, (12, 8, 52, 48))))}
    assert values(dataset.figures(samples, records))["box AP"] == 70
    assert values(dataset.figures(samples, {"1": []})) == {"box AP": 0, "box AP50": 0, "box AP75": 0}


def test_masks_of_coco_have_the_size_of_the_mask(types, opened, tmp_path):
    folders.coco(tmp_path, images=1)
    dataset = opened("coco")
    samples = dataset.samples(folders.model(types, "detection", 14))
    # The better of two detections is wrong: a box of 40 x 60 pixels, which is medium, around a small mask of 10 x 10.
    answer = detected(types, (13, 0.9, (55, 2, 65, 12)), (13, 0.5, (8, 8, 48, 48)))
    wrong, right = answer.detections
    answer = dataclasses.replace(answer, detections=(dataclasses.replace(wrong, box=types.Box(55, 2, 95, 62)), right))
    found = values(dataset.figures(samples, {"1": dataset.record(samples[0], answer)}))
    # Wrong detections of other sizes do not count to the precision of a size.
    assert found["box AP, medium"] == 50 and found["mask AP, medium"] == 100
    assert found["box AP"] == found["mask AP"] == 50


def test_coco_s_categories_in_a_row_or_by_name(types, opened, tmp_path):
    folders.coco(tmp_path)
    dataset = opened("coco")
    for classes, labels, index in ((4, (), 3), (5, ("background", "x", "stop sign", "bicycle", "person"), 2)):
        samples = dataset.samples(folders.model(types, "detection", classes, labels))
        assert [one["category_id"] for one in dataset.record(samples[0], detected(types, (index, 0.9, (8, 8, 48, 48))))] == [13]
    with refused("has 7 classes, and its labels lack 'person'", "labels.txt"):
        dataset.samples(folders.model(types, "detection", 7))


def test_folders_that_are_not_coco_s(types, opened, tmp_path):
    model = folders.model(types, "detection", 14)
    with refused("instances_val2017.json is missing"):
        opened("coco").samples(model)
    folders.coco(tmp_path)
    (tmp_path / "val2017" / "000000000002.jpg").unlink()
    with refused("000000000002.jpg is missing", "image 2"):
        opened("coco").samples(model)
    path = tmp_path / "annotations" / "instances_val2017.json"
    for content in ("no JSON", "[]", '{"images": [], "annotations": [], "categories": []}'):
        path.write_text(content)
        with refused("cannot be read", "images, annotations and categories"):
            opened("coco").samples(model)

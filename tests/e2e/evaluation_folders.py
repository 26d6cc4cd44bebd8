"""Tiny data sets in the layouts of the real ones, and models and answers that belong to them."""

import json
import pickle

import numpy
from PIL import Image

SYNSETS = ("n01440764", "n01443537", "n02979186")


def picture(path, height=12, width=16, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), numpy.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def png(path, values, palette=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values)
    if palette:
        image = image.convert("P")
        image.putdata(values.ravel().tolist())
        image.putpalette([index * 7 % 256 for index in range(768)])
    image.save(path)


def text(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def imagenet(root, per_class=2):
    for number, synset in enumerate(SYNSETS):
        for index in range(per_class):
            picture(root / "val" / synset / f"ILSVRC2012_val_{number}{index:07}.JPEG", seed=10 * number + index)


def imagenet_of_kaggle(root):
    text(root / "LOC_synset_mapping.txt", *(f"{synset} a name, another" for synset in SYNSETS))
    rows = [("ILSVRC2012_val_00000001", SYNSETS[2]), ("ILSVRC2012_val_00000002", SYNSETS[0])]
    text(root / "LOC_val_solution.csv", "ImageId,PredictionString", *(f"{name},{synset} 1 2 3 4 " for name, synset in rows))
    for name, _ in rows:
        picture(root / "ILSVRC" / "Data" / "CLS-LOC" / "val" / f"{name}.JPEG")


FINE = [f"fine {index}" for index in range(100)]


def cifar_pixels(count):
    return numpy.random.default_rng(3).integers(0, 256, (count, 3072), numpy.uint8)


def cifar100_python(root, labels=(5, 99, 0)):
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    content = {"filenames": ["x.png"] * len(labels), "batch_label": "testing batch 1 of 1", "fine_labels": list(labels),
               "coarse_labels": [0] * len(labels), "data": cifar_pixels(len(labels))}
    # Protocol 2 with the names of an old NumPy, as the real files have them.
    (folder / "test").write_bytes(pickle.dumps(content, 2).replace(b"numpy._core.", b"numpy.core."))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": FINE, "coarse_label_names": []}, 2))


def cifar100_binary(root, labels=(5, 99, 0)):
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    rows = [bytes([0, label]) + pixels.tobytes() for label, pixels in zip(labels, cifar_pixels(len(labels)))]
    (folder / "test.bin").write_bytes(b"".join(rows))
    text(folder / "fine_label_names.txt", *FINE)


def voc(root):
    base = root / "VOCdevkit" / "VOC2012"
    text(base / "ImageSets" / "Segmentation" / "val.txt", "2007_000033", "2007_000042")
    for name, classes in (("2007_000033", (0, 1, 255)), ("2007_000042", (20, 20, 0))):
        picture(base / "JPEGImages" / f"{name}.jpg")
        png(base / "SegmentationClass" / f"{name}.png",
            numpy.repeat(numpy.array(classes, numpy.uint8), 4 * 16).reshape(12, 16), palette=True)


def cityscapes(root):
    for city, name in (("lindau", "lindau_000000_000019"), ("munster", "munster_000001_000019")):
        picture(root / "leftImg8bit" / "val" / city / f"{name}_leftImg8bit.png")
        # Road 7, sky 23, bicycle 33, and 0 "unlabeled", 30 "trailer", neither of which is evaluated.
        values = numpy.array([7, 23, 33, 0, 30, 7], numpy.uint8)
        png(root / "gtFine" / "val" / city / f"{name}_gtFine_labelIds.png", numpy.repeat(values, 32).reshape(12, 16))


def kitti(root, names=("image_2", "image_3", "disp_occ_0", "disp_noc_0"), objects=True):
    left, right, occluded, visible = names
    for number in range(2):
        name = f"{number:06}_10.png"
        picture(root / "training" / left / name, seed=number)
        picture(root / "training" / right / name, seed=number)
        values = numpy.zeros((12, 16), numpy.uint16)
        values[:, :8] = 10 * 256 + 128
        png(root / "training" / occluded / name, values)
        values[6:] = 0
        png(root / "training" / visible / name, values)
        if objects:
            vehicle = numpy.zeros((12, 16), numpy.uint8)
            vehicle[:3] = 4
            png(root / "training" / "obj_map" / name, vehicle)
    # The second picture of each pair in time, which has no disparity.
    picture(root / "training" / left / "000000_11.png")


def pfm(path, values, endian="<"):
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = values.shape
    scale = b"-1.0" if endian == "<" else b"1.0"
    path.write_bytes(b"Pf\n%d %d\n%s\n" % (width, height, scale) + values[::-1].astype(endian + "f4").tobytes())


def scene_flow(root, variant="finalpass"):
    for letter, number in (("A", 0), ("B", 1)):
        inner = f"TEST/{letter}/0000"
        for side in ("left", "right"):
            picture(root / f"frames_{variant}" / inner / side / "0006.png", seed=number)
        values = numpy.full((12, 16), 8.0)
        # Upper rows at 250: they do not count.
        values[:4] = 250
        pfm(root / "disparity" / inner / "left" / "0006.pfm", values)


ACTIONS = ("BaseballPitch BasketballDunk Billiards CleanAndJerk CliffDiving CricketBowling CricketShot Diving FrisbeeCatch "
           "GolfSwing HammerThrow HighJump JavelinThrow LongJump PoleVault Shotput SoccerPenalty TennisSwing ThrowDiscus "
           "VolleyballSpiking").split()


def thumos14(root, frames=10):
    for action in ACTIONS:
        text(root / "annotation" / f"{action}_test.txt", "video_test_0000004  0.2 0.6")
    text(root / "annotation" / "Diving_test.txt", "video_test_0000004  0.2 0.6", "video_test_0000006  0 0.4")
    text(root / "annotation" / "Ambiguous_test.txt", "video_test_0000006  1.0 1.2")
    for video in ("video_test_0000004", "video_test_0000006"):
        for index in range(frames):
            picture(root / "frames" / video / f"{index + 1:06}.jpg", seed=index)


def tiff(path, volume):
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = [Image.fromarray(plane) for plane in volume]
    first.save(path, save_all=True, append_images=rest)


def care_volume(seed):
    return numpy.random.default_rng(seed).integers(100, 4000, (3, 14, 15)).astype(numpy.uint16)


def care(root):
    for number, name in enumerate(("EXP278_a.tif", "EXP278_b.tif")):
        tiff(root / "test_data" / "GT" / name, care_volume(number))
        for condition in (1, 2):
            tiff(root / "test_data" / f"condition_{condition}" / name, care_volume(10 * condition + number))


COCO_CATEGORIES = [(1, "person"), (2, "bicycle"), (13, "stop sign")]


def coco(root, images=3):
    annotations = []
    for image in range(1, images + 1):
        picture(root / "val2017" / f"{image:012}.jpg", 64, 96, seed=image)
        annotations.append({"id": image, "image_id": image, "category_id": 13, "iscrowd": 0, "bbox": [8, 8, 40, 40],
                            "area": 1600, "segmentation": [[8, 8, 48, 8, 48, 48, 8, 48]]})
    content = {
        "images": [{"id": image, "file_name": f"{image:012}.jpg", "height": 64, "width": 96}
                   for image in range(1, images + 1)],
        "annotations": annotations,
        "categories": [{"id": number, "name": name, "supercategory": ""} for number, name in COCO_CATEGORIES],
    }
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    (root / "annotations" / "instances_val2017.json").write_text(json.dumps(content))


def model(types, task, classes=0, labels=(), options=(), max_frames=0, architecture="any"):
    return types.Model(
        name="any", version=3, state=types.ModelState.READY, reason="", architecture=architecture, task=task,
        options=dict(options), input_width=0, input_height=0, classes=classes, labels=tuple(labels), max_batch_size=1,
        queued=0, load_seconds=0, buckets="", views=1, max_frames=max_frames, frames_per_second=5, max_voxels=0,
        attention_layers=(), attention_by_position=False, precision="fp32", precision_reason="",
    )


def answer(kind, types, height=12, width=16, **fields):
    """An answer of the client for a picture of this size."""
    return kind(model="any", version=3, request_id="", timings=types.Timings(0, 0, 0, 0, 0), batch_size=1, width=width,
                height=height, explanation=None, attested=b"", **fields)

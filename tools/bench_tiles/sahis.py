"""SAHI as a candidate: it cuts the picture, has PyTorch compute the detector's twin for each tile, and merges the detections."""

import io
import time

import numpy
import PIL.Image
import torch
from sahi.annotation import get_bbox_from_coco_segmentation
from sahi.models.torchvision import TorchVisionDetectionModel
from sahi.predict import get_sliced_prediction
from sahi.utils.cv import get_coco_segmentation_from_bool_mask
from sahi.utils.torch_utils import to_float_tensor

from models.reference.scenes import objects
from models.reference.training import evaluation, export
from models.reference.training.recipes import RECIPES
from tools.bench_tiles.sheets import TILE, Found


class WithMasks(TorchVisionDetectionModel):
    """SAHI's own class raises an error for a mask that is too thin for a polygon; this one leaves such detections out."""

    def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
        create = super()._create_object_prediction_list_from_original_predictions
        try:
            create(shift_amount_list, full_shape_list)
        except ValueError:
            self._original_predictions = [self._with_polygons(one) for one in self._original_predictions]
            create(shift_amount_list, full_shape_list)

    def _with_polygons(self, predictions):
        masks = (predictions["masks"] > self.mask_threshold).numpy()
        kept = [get_bbox_from_coco_segmentation(get_coco_segmentation_from_bool_mask(mask)) is not None for mask in masks]
        return {name: values[torch.tensor(kept)] for name, values in predictions.items()}


class InBatches(TorchVisionDetectionModel):
    """SAHI's own class for torchvision's detectors gives the network tile after tile; this one gives it several at once."""

    def perform_batch_inference(self, images):
        self.computed = self.model([to_float_tensor(image) for image in images])

    def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
        found = []
        for one, shift, shape in zip(self.computed, shift_amount_list, full_shape_list):
            self._original_predictions = [one]
            super()._create_object_prediction_list_from_original_predictions([shift], [shape])
            found += self._object_prediction_list_per_image
        self._object_prediction_list_per_image = found


class Sahi:
    """`batch` tiles are computed at once; `more` are SAHI's own options of how detections are merged."""

    def __init__(self, overlap: int, score: float, masks: bool = True, batch: int = 1, **more) -> None:
        recipe = RECIPES["detector"]
        network = evaluation.load(recipe, export.path(recipe, True, 0))
        if not masks:
            network.roi_heads.mask_roi_pool = None
        if masks and batch > 1:
            raise ValueError("masks are computed tile by tile")
        kind = WithMasks if masks else TorchVisionDetectionModel if batch == 1 else InBatches
        self.model = kind(model=network, device="cpu", confidence_threshold=score,
                          category_mapping={str(n): name for n, name in enumerate(objects.LABELS)})
        self.options = {"slice_height": TILE, "slice_width": TILE, "overlap_height_ratio": overlap / TILE,
                        "overlap_width_ratio": overlap / TILE, "perform_standard_pred": False, "verbose": 0, "batch_size": batch, **more}

    def __call__(self, file: bytes) -> Found:
        picture = numpy.array(PIL.Image.open(io.BytesIO(file)))
        with torch.inference_mode():
            answer = get_sliced_prediction(picture, self.model, **self.options).object_prediction_list
        answer.sort(key=lambda one: -one.score.value)
        boxes = numpy.array([one.bbox.to_xyxy() for one in answer], numpy.float32).reshape(-1, 4)
        return Found(boxes, numpy.array([one.category.id for one in answer], numpy.int64))

    def processor(self) -> float:
        return time.process_time()

"""EA R-C3D: R-C3D ("R-C3D: Region Convolutional 3D Network for Temporal Activity Detection") on a 3-D ResNet-50, with
efficient attention after res3 and res4 ("Efficient Attention: Attention with Linear Complexities"). Its tables 2 and 9
say "after the x-th ResBlock group": res3 and res4 are torchvision's layer3 and layer4. Layer4 computes proposals, so
attention after res4 mixes the positions of one proposal's region.

The paper gives no more details. The rest follows R-C3D's usual port to PyTorch, except for the proposal network, which
follows R-C3D's paper: one 3x3x3 convolution, then the maximum over each step. Names of the backbone are torchvision's.
"""

import math

import torch
from torch import nn
from torch.nn import functional
from torchvision.ops import nms

from models.reference.efficient_attention import EfficientAttention
from models.reference.options import choice

STRIDE = 16  # frames, height and width must be multiples of this
STEP = 8  # frames per step of the map
BINS = (4, 2, 2)  # bins to which a proposal's steps are pooled
PLACES = ("res1", "res2", "res3", "res4")
CANDIDATES, MAX_OVERLAP = 2000, 0.7  # maximum number before suppression of proposals, and maximum overlap after it
LEAST_FRAMES = 1.0
MAX_GROWTH = math.log(1000 / 16)
PROPOSAL_WEIGHTS, ACTION_WEIGHTS = (1.0, 1.0), (10.0, 5.0)


class Bottleneck(nn.Module):
    """torchvision's block, with 3-D kernels."""

    def __init__(self, inputs: int, middle: int, stride: int, downsample: nn.Module | None):
        super().__init__()
        self.conv1 = nn.Conv3d(inputs, middle, 1, bias=False)
        self.bn1 = nn.BatchNorm3d(middle)
        self.conv2 = nn.Conv3d(middle, middle, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm3d(middle)
        self.conv3 = nn.Conv3d(middle, 4 * middle, 1, bias=False)
        self.bn3 = nn.BatchNorm3d(4 * middle)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


def residual_stage(inputs: int, middle: int, blocks: int, stride: int) -> nn.Sequential:
    shortcut = nn.Sequential(nn.Conv3d(inputs, 4 * middle, 1, stride, bias=False), nn.BatchNorm3d(4 * middle))
    layers = [Bottleneck(inputs, middle, stride, shortcut)]
    return nn.Sequential(*layers, *(Bottleneck(4 * middle, middle, 1, None) for _ in range(blocks - 1)))


class ProposalHead(nn.Module):
    """For every step and anchor a logit, whose sigmoid is the probability of an action there, and two offsets that move
    the anchor."""

    def __init__(self, channels: int, anchors: int):
        super().__init__()
        self.conv = nn.Conv3d(channels, channels // 2, 3, padding=1)
        self.cls_logits = nn.Conv3d(channels // 2, anchors, 1)
        self.segment_pred = nn.Conv3d(channels // 2, 2 * anchors, 1)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns logits [B, steps, anchors] and offsets [B, steps, anchors, 2]."""
        steps = self.conv(features).relu().amax(dim=(3, 4), keepdim=True)
        logits = self.cls_logits(steps).flatten(2).transpose(1, 2)
        offsets = self.segment_pred(steps).flatten(2).transpose(1, 2)
        return logits, offsets.unflatten(2, (-1, 2))


class ActionHead(nn.Module):
    def __init__(self, channels: int, classes: int):
        super().__init__()
        self.cls_score = nn.Linear(channels, classes)
        self.segment_pred = nn.Linear(channels, 2 * classes)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns logits [K, classes] and offsets [K, classes, 2] for features [K, C, ...]."""
        means = features.flatten(2).mean(dim=2)
        return self.cls_score(means), self.segment_pred(means).unflatten(1, (-1, 2))


def moved(segments: torch.Tensor, offsets: torch.Tensor, weights: tuple[float, float]) -> torch.Tensor:
    """Applies offsets [..., 2] to segments [..., 2]: the centre in units of the length, the length by a power of e."""
    start, end = segments.unbind(-1)
    length = end - start
    centre = offsets[..., 0] / weights[0] * length + (start + 0.5 * length)
    half = 0.5 * (offsets[..., 1] / weights[1]).clamp(max=MAX_GROWTH).exp() * length
    return torch.stack([centre - half, centre + half], dim=-1)


def suppressed(segments: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Returns indices of segments [N, 2], best first, without those that overlap a better one by more than the
    threshold."""
    zeros, ones = torch.zeros_like(scores), torch.ones_like(scores)
    return nms(torch.stack([segments[:, 0], zeros, segments[:, 1], ones], dim=1), scores, threshold)


def pool_segments(features: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    """Pools the steps of features [C, T, H, W] that each segment [K, 2] touches, and at least one, to BINS."""
    pooled = []
    for start, end in segments.tolist():
        first = min(math.floor(start / STEP), features.shape[1] - 1)
        last = max(math.ceil(end / STEP), first + 1)
        pooled.append(functional.adaptive_max_pool3d(features[:, first:last], BINS))
    return torch.stack(pooled)


class Rc3d(nn.Module):
    """Finds actions in normalised clips [B, 3, F, H, W]: {"segments" [K, 2] in frames, "scores", "labels"} for each
    clip, best first. F is a multiple of 16. `frames` has each clip's own length; the frames after it are zero."""

    def __init__(self, attention="res3,res4", normalization="softmax", heads=1, key_channels=64, value_channels=64,
                 classes=21, frames=768, size=112, frames_per_second=25, anchors="2,4,5,6,8,9,10,12,14,16",
                 score_threshold=0.05, nms_threshold=0.4, detections=100, proposals=300, width=1.0, blocks="3,4,6,3"):
        super().__init__()
        # For the daemon, which prepares the clips; the network takes any size.
        self.max_frames, self.size, self.frames_per_second = int(frames), int(size), float(frames_per_second)
        self.score_threshold, self.nms_threshold = float(score_threshold), float(nms_threshold)
        self.detections, self.proposals = int(detections), int(proposals)
        lengths = [int(length) for length in str(anchors).split(",")]
        self.register_buffer("lengths", STEP * torch.tensor(lengths, dtype=torch.float32), persistent=False)
        channels = round(64 * float(width))
        self.conv1 = nn.Conv3d(3, channels, 7, stride=(1, 2, 2), padding=3, bias=False)
        self.bn1 = nn.BatchNorm3d(channels)
        self.maxpool = nn.MaxPool3d(3, stride=2, padding=1)
        inputs = channels
        for stage, count in enumerate(str(blocks).split(",")):
            middle = channels << stage
            setattr(self, f"layer{stage + 1}", residual_stage(inputs, middle, int(count), 1 if stage == 0 else 2))
            inputs = 4 * middle
        widths = {place: 4 * channels << stage for stage, place in enumerate(PLACES)}
        places = [] if attention == "none" else [choice("attention", place, PLACES) for place in attention.split(",")]
        self.attention = nn.ModuleDict({
            place: EfficientAttention(widths[place], int(key_channels), int(value_channels), int(heads), normalization,
                                      dimensions=3) for place in places})
        self.tpn = ProposalHead(widths["res3"], len(lengths))
        self.head = ActionHead(inputs, int(classes))
        for module in self.modules():
            if isinstance(module, nn.Conv3d) and module.bias is None:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def attend(self, place: str, x: torch.Tensor) -> torch.Tensor:
        return self.attention[place](x) if place in self.attention else x

    def features(self, clips: torch.Tensor) -> torch.Tensor:
        """Returns [B, C, F / 8, H / 16, W / 16]."""
        x = self.maxpool(self.bn1(self.conv1(clips)).relu())
        x = self.attend("res1", self.layer1(x))
        x = self.attend("res2", self.layer2(x))
        return self.attend("res3", self.layer3(x))

    def regions(self, features: torch.Tensor, proposals: torch.Tensor) -> torch.Tensor:
        """Returns what the head judges of one clip's proposals [K, 2], [K, C, ...]; features are [C, T, H, W]."""
        return self.attend("res4", self.layer4(pool_segments(features, proposals)))

    def anchors(self, steps: int) -> torch.Tensor:
        """Returns [steps, anchors, 2], centred on the middle of each step."""
        centres = STEP * (torch.arange(steps, dtype=self.lengths.dtype, device=self.lengths.device)[:, None] + 0.5)
        return torch.stack([centres - self.lengths / 2, centres + self.lengths / 2], dim=-1)

    def propose(self, logits: torch.Tensor, offsets: torch.Tensor, frames: int) -> torch.Tensor:
        """Returns one clip's proposals [K, 2], best first."""
        segments = moved(self.anchors(len(logits)), offsets, PROPOSAL_WEIGHTS).clamp(0, frames).flatten(0, 1)
        logits = logits.flatten()
        long_enough = segments[:, 1] - segments[:, 0] >= LEAST_FRAMES
        segments, logits = segments[long_enough], logits[long_enough]
        best = logits.sort(descending=True, stable=True).indices[:CANDIDATES]
        segments, logits = segments[best], logits[best]
        return segments[suppressed(segments, logits, MAX_OVERLAP)[:self.proposals]]

    def find(self, features: torch.Tensor, proposals: torch.Tensor, frames: int) -> dict[str, torch.Tensor]:
        """Returns the actions among one clip's proposals [K, 2]; features are [C, T, H, W]."""
        if len(proposals):
            logits, offsets = self.head(self.regions(features, proposals))
        else:
            logits, offsets = (self.head.cls_score.weight.new_zeros(0, self.head.cls_score.out_features, *more)
                               for more in ((), (2,)))
        scores = logits.softmax(dim=1)
        segments = moved(proposals[:, None], offsets, ACTION_WEIGHTS).clamp(0, frames)
        chosen = (scores > self.score_threshold) & (segments[..., 1] - segments[..., 0] >= LEAST_FRAMES)
        chosen[:, 0] = False  # the background
        labels = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)[chosen]
        segments, scores = segments[chosen], scores[chosen]
        kept = [own[suppressed(segments[own], scores[own], self.nms_threshold)]
                for own in ((labels == label).nonzero().flatten() for label in labels.unique())]
        best = torch.cat(kept) if kept else labels
        best = best[scores[best].sort(descending=True, stable=True).indices[:self.detections]]
        return {"segments": segments[best], "scores": scores[best], "labels": labels[best]}

    def forward(self, clips: torch.Tensor, frames: list[int] | None = None) -> list[dict[str, torch.Tensor]]:
        if clips.shape[2] % STRIDE:
            raise ValueError(f"clips have {clips.shape[2]} frames; it must be a multiple of {STRIDE}")
        frames = frames if frames is not None else [clips.shape[2]] * len(clips)
        features = self.features(clips)
        logits, offsets = self.tpn(features)
        return [self.find(features[i], self.propose(logits[i], offsets[i], length), length)
                for i, length in enumerate(frames)]

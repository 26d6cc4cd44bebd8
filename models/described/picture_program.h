// What makes a program of named tensors a model of pictures: how a picture becomes its input, and what its
// outputs mean. Does not include LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/api/description.h"
#include "models/api/placement.h"
#include "models/programs/signature.h"

namespace saccade::models {

// The largest side of a detection's mask.
inline constexpr int64_t kMaxMaskSide = 512;
// The largest Head::max_detections and Head::max_candidates.
inline constexpr int64_t kMaxDetectionsKept = 10'000;
// Bounds on PictureProgram::labels: their number, and the bytes of each. A labels file has the same.
inline constexpr int64_t kMaxLabelCount = 65'536;
inline constexpr size_t kMaxLabelBytes = 256;

enum class HeadKind {
  // Logits or probabilities of classes: [C].
  kClasses,
  // DETR's set of queries: logits [Q, C], boxes [Q, 4].
  kSets,
  // Boxes [N, 4] with scores [N] and labels [N], or with scores [N, C]. With labels there may be masks, as
  // probabilities on a grid over each box: [N, side, side]. A mask may also be made of prototypes [K, h, w],
  // which cover the network's input, with coefficients [N, K].
  kBoxes,
  // One row for each position of a grid without anchors, as YOLO has it: box, scores, and keypoints or the
  // coefficients of a mask.
  kGrid,
  // Logits [C, h, w].
  kSemantic,
  // [h, w] or [1, h, w].
  kDepth,
  // [D].
  kEmbedding,
};

// What the numbers of a class are. kNone: probabilities already.
enum class ScoreActivation { kSoftmax, kSigmoid, kNone };

// kCorners: x_min, y_min, x_max, y_max. kCentre: centre x, centre y, width, height. kCorner: x_min, y_min,
// width, height.
enum class BoxFormat { kCorners, kCentre, kCorner };

// What an output of the program holds.
enum class Role {
  kLogits,
  kBoxes,
  kScores,
  kLabels,
  kMasks,
  kCoefficients,
  kPrototypes,
  kGrid,
  kDepth,
  kEmbedding
};

// Returns "logits", "boxes", ...
const char* NameOf(Role role);

struct Head {
  HeadKind kind = HeadKind::kClasses;
  ScoreActivation activation = ScoreActivation::kSoftmax;

  // For detections.
  BoxFormat format = BoxFormat::kCorners;
  // Whether coordinates are fractions of the picture instead of pixels of the network's input.
  bool normalized = false;
  // Findings with at most this score are omitted.
  float score_threshold = 0;
  int64_t max_detections = 100;
  // IoU above which the lower score is suppressed; nullopt if the network does that itself.
  std::optional<float> nms = std::nullopt;
  // Whether boxes of different classes suppress each other too.
  bool across_classes = false;
  // Highest scores of each class that take part in suppression.
  int64_t max_candidates = 1000;
  // kSets with softmax: whether the last class stands for no object.
  bool no_object = true;
  // kBoxes with scores [N, C]: whether class 0 is the background.
  bool background = false;

  // kGrid.
  bool channels_first = true;  // [columns, N] instead of [N, columns]
  bool objectness = false;     // a column after the box that multiplies every score
  int64_t keypoints = 0;       // points of x, y and visibility after the scores
  // If not empty, boxes are offsets and logarithms relative to cells of these strides, as in YOLOX.
  std::vector<int64_t> strides = {};

  // With prototypes: whether they are [h, w, K] instead of [K, h, w], and the side of the grid over each box
  // to which masks are interpolated where all have to have one size.
  bool prototypes_last = false;
  int64_t mask_side = 56;

  // kDepth: how the map is scaled to the picture.
  Interpolation filter = Interpolation::kBilinear;

  // kEmbedding: whether the vector is scaled to length 1.
  bool unit_length = false;
};

struct PictureProgram {
  ImageInput input = {};
  // The tensor that takes the pictures, with its dims.
  TensorSignature pictures = {};
  bool channels_last = false;
  // If set, an input of 1 where there is picture and 0 where there is padding: [height, width].
  std::optional<TensorSignature> mask = std::nullopt;
  Head head = {};
  // The outputs that the head reads, and what each holds.
  std::vector<TensorSignature> outputs = {};
  std::vector<Role> roles = {};
  // Empty, or one per class.
  std::vector<std::string> labels = {};
  // 0: the daemon's default.
  int64_t max_batch_size = 0;
};

Task TaskOf(HeadKind kind);
// The position of a role in program.roles; nullopt if no output has it.
std::optional<size_t> OutputOf(const PictureProgram& program, Role role);
// The interface of the program.
Signature SignatureOf(const PictureProgram& program);

// Reads a saccade.json. Throws a LoadError that names the key, what it is and what was expected.
PictureProgram ReadDescription(std::string_view json);

// Reads a folder of Hugging Face's: config.json and preprocessor_config.json. Throws a LoadError, which
// begins with the name of the file that is wrong, and also says if the architecture is not one whose head is
// known.
PictureProgram ReadHuggingFace(std::string_view config, std::string_view processor);

}  // namespace saccade::models

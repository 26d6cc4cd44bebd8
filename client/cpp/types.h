// Results and metadata from the daemon, as plain structs: users of the client need no protobuf or gRPC
// headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace saccade::client {

// Time spent in each stage. All but round_trip are measured by the daemon.
struct Timings {
  absl::Duration decode;
  absl::Duration queue;
  absl::Duration infer;
  // Encoding the model's output into the response: masks, pictures, voxels.
  absl::Duration encode;
  absl::Duration total;
  // From before the request was serialised until its response was read, measured by the client.
  absl::Duration round_trip;
};

// A rectangle in pixels of the upright picture. It must lie within the picture.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// Square parts of a picture, which a model sees one by one.
struct Tiles {
  // Side of a tile, in pixels of the picture.
  int size = 0;
  // Pixels that neighbouring tiles share: at most half of the size.
  int overlap = 0;
  // Replaces the model's own tiles by the whole picture. Then size and overlap must be 0.
  bool whole = false;
};

// How strongly a layer attends to each position of its grid.
struct AttentionMap {
  // For example "key 0" or "head 0 rows": docs/api.md lists the names per kind of attention.
  std::string name;
  int width = 0;
  int height = 0;
  // An 8-bit grey PNG: 0 is `min`, 255 is `max`.
  std::string png;
  float min = 0;
  float max = 0;
};

// A rectangle in pixels of the upright picture. It may reach beyond the picture.
struct PicturePart {
  float x = 0;
  float y = 0;
  float width = 0;
  float height = 0;
};

struct Explanation {
  std::string layer;
  std::vector<AttentionMap> maps;
  // Number of maps that the layer has; `maps` are the first of them.
  int available = 0;
  // The part of the picture that each map covers. Unset if the daemon is older than this field.
  std::optional<PicturePart> seen = std::nullopt;
};

// Fields of every response, independent of the model's task.
struct Answer {
  std::string model;
  int64_t version = 0;
  std::string request_id;
  Timings timings;
  // Number of pictures that shared the forward pass.
  int batch_size = 0;
  // Size of the decoded picture, after its EXIF orientation was applied.
  int picture_width = 0;
  int picture_height = 0;
  // Set if the request asked for it.
  std::optional<Explanation> explanation = std::nullopt;
  // The whole response, serialised, if it carries a signed statement: what `saccade prove` reads. Else empty.
  std::string attested = {};
};

struct ScoredClass {
  int64_t index = 0;
  // Empty if the model has no class names.
  std::string label;
  float probability = 0;
  float logit = 0;
};

struct Classification : Answer {
  // Most probable first.
  std::vector<ScoredClass> classes;
};

// In pixels of the picture, clipped to it; pixel i covers [i, i + 1].
struct Box {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;
};

// A mask of the whole picture in COCO's run-length encoding; rle.h decodes it.
struct RleMask {
  int height = 0;
  int width = 0;
  // COCO's compressed text: pycocotools.mask.decode takes {"size": [height, width], "counts": counts}.
  std::string counts;
  // Number of pixels in the mask, computed by the daemon.
  int64_t area = 0;
};

enum class MaskForm { kRle, kPng, kPolygons };

// The part of the picture that a mask lies in. Size 0 x 0 and no PNG if the mask has no pixels.
struct MaskPicture {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  // An 8-bit grey PNG: 255 inside the mask, 0 outside.
  std::string png;
  // Number of pixels in the mask.
  int64_t area = 0;
};

struct MaskPolygon {
  // x, y, x, y, ... along the outline, in whole pixels of the picture.
  std::vector<int> points;
  // True if the polygon encloses a hole. Its points still belong to the mask.
  bool hole = false;
};

// Filling all polygons together by the even-odd rule, edges included, reproduces the mask exactly.
struct MaskPolygons {
  std::vector<MaskPolygon> polygons;
  // Number of pixels in the mask.
  int64_t area = 0;
};

// A point of an object, in pixels of the picture. It may lie outside of the picture.
struct Keypoint {
  float x = 0;
  float y = 0;
  // How certain it is that the point is visible, from 0 to 1.
  float score = 0;
};

struct Crop;

struct Detection {
  Box box;
  float score = 0;
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  // At most one of the three is set, depending on the requested form; none if none was requested or the model
  // returns no masks.
  std::optional<RleMask> mask;
  std::optional<MaskPicture> mask_picture = std::nullopt;
  std::optional<MaskPolygons> mask_polygons = std::nullopt;
  // One for each model that sees the ensemble's crops; empty for other models.
  std::vector<Crop> crops;
  // In the model's order; empty if the model has no keypoints.
  std::vector<Keypoint> keypoints = {};
};

// What one model says of the part of the picture around a detection, in the form of its task.
struct Crop {
  std::string model;
  int64_t version = 0;
  // The part that the model saw.
  Region region;
  // Most probable first; empty unless the model classifies.
  std::vector<ScoredClass> classes = {};
  // In pixels of the whole picture; empty unless the model detects.
  std::vector<Detection> detections = {};
  // Empty unless the model makes embeddings.
  std::vector<float> embedding = {};
  // Why there is no result; empty if there is one.
  std::string error = {};
};

struct Detections : Answer {
  // Best score first. May be empty.
  std::vector<Detection> items;
};

struct ClassArea {
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  int64_t pixels = 0;
  // Fraction of the picture.
  float fraction = 0;
};

// kPng: an 8-bit grey PNG; a pixel's value is its class. kRaw: width * height bytes, row by row. kNone: only
// the areas.
enum class LabelMapFormat { kPng, kRaw, kNone };

struct Segmentation : Answer {
  int width = 0;
  int height = 0;
  LabelMapFormat format = LabelMapFormat::kPng;
  // In `format`.
  std::string label_map;
  // The classes that occur, largest area first.
  std::vector<ClassArea> areas;
};

// kPng16: a 16-bit grey PNG of disparity * 256, rounded, as in KITTI; 0 stands for no value. kFloat: width *
// height little-endian float32, row by row.
enum class DisparityFormat { kPng16, kFloat };

// Disparities of the left picture: how many pixels further left the same point lies in the right picture.
struct Disparity : Answer {
  int width = 0;
  int height = 0;
  DisparityFormat format = DisparityFormat::kPng16;
  // In `format`.
  std::string map;
  float min = 0;
  float max = 0;
  float mean = 0;
};

// The depth of each pixel of a picture, in the model's own unit, in the form of a disparity map.
struct DepthMap : Disparity {};

// A picture as a vector, for comparisons with other pictures' vectors from the same model.
struct Embedding : Answer {
  std::vector<float> values;
};

// An action found in a clip.
struct Action {
  double start_seconds = 0;
  double end_seconds = 0;
  float score = 0;
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  // In frames that the model saw: frame i lasts from i to i + 1.
  float start_frame = 0;
  float end_frame = 0;
};

struct Actions : Answer {
  // Best score first. May be empty.
  std::vector<Action> items;
  // Number of frames that the model saw, and their rate in frames per second.
  int frames = 0;
  double frames_per_second = 0;
};

enum class VoxelType { kUint8, kUint16, kFloat32 };

struct VolumeShape {
  int depth = 0;
  int height = 0;
  int width = 0;
  VoxelType type = VoxelType::kUint8;

  int64_t VoxelBytes() const { return type == VoxelType::kUint8 ? 1 : type == VoxelType::kUint16 ? 2 : 4; }
  // REQUIRES: the result fits into an int64_t, which is true of every shape in a response.
  int64_t Bytes() const { return int64_t{depth} * height * width * VoxelBytes(); }
};

// A volume in the units of the volume as it was sent. A projection has one plane.
struct Restoration : Answer {
  VolumeShape shape;
  // shape.Bytes() bytes: little-endian elements, plane by plane and row by row.
  std::string voxels;
  float min = 0;
  float max = 0;
};

// The result of any task.
using AnyAnswer = std::variant<Classification, Detections, Segmentation, Disparity, DepthMap, Embedding,
                               Actions, Restoration>;

enum class ModelState { kUnknown, kLoading, kReady, kUnavailable };

// How long forward passes take over items that are padded to the same size, or tensors of the same shapes.
struct BucketTiming {
  int64_t id = 0;
  // "height x width" ("800x1344"), with the depth in front for volumes; empty for named tensors.
  std::string name;
  // Number of items computed for requests since the model was loaded.
  int64_t items = 0;
  // Mean time of a pass over 1, 2, 3 and more items, up to the maximum batch size.
  std::vector<absl::Duration> passes;
  // The smallest and the largest batch that was measured; other sizes are estimated from them.
  int smallest = 0;
  int largest = 0;
  // Standard deviation of a pass's time, relative to the mean.
  double deviation = 0;
};

// What the daemon has measured of a model's forward passes, and with what they are computed.
struct ModelTiming {
  std::vector<BucketTiming> buckets;
  // Passes that may run at the same time, and the cores that each uses; 0 cores on a GPU.
  int instances = 0;
  int threads = 0;
  // Cores that the daemon divides among all models.
  int cores = 0;
  int64_t max_queue_size = 0;
  // Memory that the model holds on the CPU, and that the whole daemon holds.
  int64_t model_bytes = 0;
  int64_t resident_bytes = 0;
};

// Whether a shadow version takes the place of another version of its model.
struct Promotion {
  enum class State { kUnknown, kMeasuring, kPromoted, kRefused };
  State state = State::kUnknown;
  // The parameter `promote` of the model's configuration.
  std::string rule;
  // The shadow version, and the version whose place it takes.
  int64_t shadow = 0;
  int64_t replaces = 0;
  // How far the comparison is, or the measures that decided.
  std::string reason;
};

struct Model {
  std::string name;
  int64_t version = 0;
  ModelState state = ModelState::kUnknown;
  // Why the model is unavailable, as text.
  std::string reason;
  std::string architecture;
  std::string task;
  std::map<std::string, std::string> options;
  // Size of the network's input; the largest size, lying down, for a model that takes pictures of many sizes.
  // 0 for volumes and for models that take named tensors.
  int input_width = 0;
  int input_height = 0;
  // Sizes to which pictures are padded ("stride:32", "800x1344,1344x800"); empty if all inputs have the same
  // size.
  std::string buckets;
  // Number of pictures in one input: 2 for stereo.
  int views = 1;
  // Maximum number of frames in a clip, and the rate at which a video is sampled; 0 for other tasks.
  int max_frames = 0;
  double frames_per_second = 0;
  // Maximum number of voxels in a volume; 0 for other tasks.
  int64_t max_voxels = 0;
  int64_t classes = 0;
  std::vector<std::string> labels;
  // Layers whose attention can be requested; empty if there are none.
  std::vector<std::string> attention_layers;
  // True if their maps are for chosen positions (Explain::positions).
  bool attention_by_position = false;
  // In which the network is computed ("fp32", "bf16"), and why; empty for programs and ensembles.
  std::string precision;
  std::string precision_reason;
  int max_batch_size = 0;
  // Number of requests that currently wait for an instance.
  int64_t queued = 0;
  absl::Duration load_duration;
  // Returned by GetModel only, for models that are ready.
  std::optional<ModelTiming> timing = std::nullopt;
  // Set for the version that a rule may replace with its shadow version, and for one that was promoted.
  std::optional<Promotion> promotion = std::nullopt;
};

enum class Health { kUnknown, kServing, kNotServing };

struct ServerMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

}  // namespace saccade::client

// What the daemon tells, as plain structs: no protobuf or gRPC header is needed to use the client.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace saccade::client {

// Where the time went. All but round_trip are the daemon's own measurements.
struct Timings {
  absl::Duration decode;
  absl::Duration queue;
  absl::Duration infer;
  // Making the answer of what the model gave: masks, pictures, voxels.
  absl::Duration encode;
  absl::Duration total;
  // From before the request was serialised until its answer was read, as this client saw it.
  absl::Duration round_trip;
};

// In pixels of the upright picture, and within it.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// How much a layer of attention looks where, on the grid of its positions.
struct AttentionMap {
  // "key 0", "head 0 rows": docs/api.md says which attention has which.
  std::string name;
  int width = 0;
  int height = 0;
  // 8 bits grey: 0 is `least`, 255 is `most`.
  std::string png;
  float least = 0;
  float most = 0;
};

struct Explanation {
  std::string layer;
  std::vector<AttentionMap> maps;
  // How many the layer has, of which those are the first.
  int available = 0;
};

// What every answer tells, whatever the model's task.
struct Answer {
  std::string model;
  int64_t version = 0;
  std::string request_id;
  Timings timings;
  // How many pictures shared the forward pass.
  int batch_size = 0;
  // Of the decoded picture, after its EXIF orientation was applied.
  int picture_width = 0;
  int picture_height = 0;
  // If the request asked for one.
  std::optional<Explanation> explanation = std::nullopt;
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

// A mask of the whole picture in COCO's run lengths; rle.h makes pixels of it.
struct RleMask {
  int height = 0;
  int width = 0;
  // COCO's compressed text: pycocotools.mask.decode takes {"size": [height, width], "counts": counts}.
  std::string counts;
  // Pixels in the mask, as the daemon says.
  int64_t area = 0;
};

enum class MaskForm { kRle, kPng, kPolygons };

// The part of the picture that a mask lies in; no sides, and no PNG, if the mask has no pixels.
struct MaskPicture {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  // 8 bits grey: 255 in the mask, 0 beside it.
  std::string png;
  // Pixels in the mask.
  int64_t area = 0;
};

struct MaskPolygon {
  // x, y, x, y, ... in whole pixels of the picture, around.
  std::vector<int> points;
  // Around what is no part of the mask; its points are.
  bool hole = false;
};

// Filled together, by even and odd and with their edges, they are the mask to the pixel.
struct MaskPolygons {
  std::vector<MaskPolygon> polygons;
  // Pixels in the mask.
  int64_t area = 0;
};

struct Detection {
  Box box;
  float score = 0;
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  // One of the three, in the form that was asked for. Missing if none was, or the model draws none.
  std::optional<RleMask> mask;
  std::optional<MaskPicture> mask_picture = std::nullopt;
  std::optional<MaskPolygons> mask_polygons = std::nullopt;
};

struct Detections : Answer {
  // Best score first. None is an answer.
  std::vector<Detection> items;
};

struct ClassArea {
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  int64_t pixels = 0;
  // Of the picture.
  float fraction = 0;
};

// kPng: 8 bits grey, one class a pixel. kRaw: width * height bytes, row by row. kNone: the areas alone.
enum class LabelMapFormat { kPng, kRaw, kNone };

struct Segmentation : Answer {
  int width = 0;
  int height = 0;
  LabelMapFormat format = LabelMapFormat::kPng;
  // In that format.
  std::string label_map;
  // Of the classes that are there, largest first.
  std::vector<ClassArea> areas;
};

// kPng16: 16 bits grey, disparity * 256 rounded, as KITTI has it; 0 stands for no value. kFloat: width *
// height little-endian float32, row by row.
enum class DisparityFormat { kPng16, kFloat };

// Of the left picture: how many pixels further left the right one shows the same.
struct Disparity : Answer {
  int width = 0;
  int height = 0;
  DisparityFormat format = DisparityFormat::kPng16;
  // In that format.
  std::string map;
  float least = 0;
  float most = 0;
  float mean = 0;
};

// Something that happens in a clip.
struct Action {
  double start_seconds = 0;
  double end_seconds = 0;
  float score = 0;
  int64_t class_index = 0;
  // Empty if the model has no class names.
  std::string label;
  // Counted in the frames that the model saw: frame i lasts from i to i + 1.
  float start_frame = 0;
  float end_frame = 0;
};

struct Actions : Answer {
  // Best score first. None is an answer.
  std::vector<Action> items;
  // That the model saw, and how many there were a second.
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
  // REQUIRES: no more than an int64_t can count; those of an answer have no more.
  int64_t Bytes() const { return int64_t{depth} * height * width * VoxelBytes(); }
};

// In the units of the volume as it was sent. A projection has one plane.
struct Restoration : Answer {
  VolumeShape shape;
  // shape.Bytes() of them: little-endian elements, plane by plane and row by row.
  std::string voxels;
  float least = 0;
  float most = 0;
};

// Of any task.
using AnyAnswer = std::variant<Classification, Detections, Segmentation, Disparity, Actions, Restoration>;

enum class ModelState { kUnknown, kLoading, kReady, kUnavailable };

struct Model {
  std::string name;
  int64_t version = 0;
  ModelState state = ModelState::kUnknown;
  // Why the model is unavailable, in words.
  std::string reason;
  std::string architecture;
  std::string task;
  std::map<std::string, std::string> options;
  // The network's input, or the nominal one of a model that takes pictures of many sizes.
  int input_width = 0;
  int input_height = 0;
  // Which sizes a picture is padded to ("stride:32", "800x1344,1344x800"); empty where all have one size.
  std::string buckets;
  // Pictures in one input: 2 for stereo.
  int views = 1;
  // Of a clip, at most, and what is taken of a video; 0 for other tasks.
  int most_frames = 0;
  double frames_per_second = 0;
  // Of a volume, at most; 0 for other tasks.
  int64_t most_voxels = 0;
  int64_t classes = 0;
  std::vector<std::string> labels;
  // Those that a request may ask to see; empty if there are none.
  std::vector<std::string> attention_layers;
  // Whether their maps are of chosen positions (Explain::positions).
  bool attention_by_position = false;
  int max_batch_size = 0;
  // Requests that wait for an instance right now.
  int64_t queued = 0;
  absl::Duration load_duration;
};

enum class Health { kUnknown, kServing, kNotServing };

struct ServerMetadata {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

}  // namespace saccade::client

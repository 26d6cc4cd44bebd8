// What the server speaks between its rooms: a request and its answer, free of any protocol and of LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/attention_probe.h"
#include "models/description.h"
#include "models/tasks/result.h"
#include "server/core/byte_pieces.h"
#include "server/core/call_head.h"
#include "server/core/tensor.h"
#include "server/core/timings.h"

namespace saccade::server {

// Bytes that somebody else owns; `owner` keeps them alive (a gRPC message, mostly). Never copied.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

// A whole file: a picture (JPEG, PNG, WebP, TIFF or BMP), a video of which a clip is made, or a TIFF of which
// a volume is made. Which, its model's medium says.
struct EncodedPicture {
  SharedBytes data;
};

// 8-bit interleaved pixels, `width * height * 3` bytes, checked by the protocol that made it.
struct RawPicture {
  int width = 0;
  int height = 0;
  bool rgb = true;
  SharedBytes data;
};

enum class VoxelType { kUint8, kUint16, kFloat32 };

// Little-endian voxels, plane by plane and row by row; the sizes are positive, and `data` holds exactly what
// they take: checked by the protocol that made it.
struct RawVolume {
  int depth = 0;
  int height = 0;
  int width = 0;
  VoxelType type = VoxelType::kFloat32;
  SharedBytes data;
};

// A part of a picture, in pixels of the whole, upright. The corner is not negative, the sides are positive.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// Normalised fp32 pictures [count, 3 * views, height, width], clips [count, frames, 3, height, width],
// ready for the network, or volumes [count, 1, depth, height, width] as they are; `data` holds exactly the
// shape's bytes, little-endian. Results are in the tensor's own coordinates.
struct TensorInput {
  std::vector<int64_t> shape;
  BytePieces data;
};

using Picture = std::variant<EncodedPicture, RawPicture, RawVolume>;

// What a program takes, by name; their bytes are as many as shapes and types say, and BYTES split into their
// elements: checked by the protocol that made them.
struct NamedTensors {
  std::vector<Tensor> tensors;
  // Of each tensor's first extent; 1 where the model knows no batch.
  int64_t rows = 1;
};

// Either pictures that the decode pool has to prepare, or tensors that are ready.
using Input = std::variant<std::vector<Picture>, TensorInput, NamedTensors>;

struct Response;

struct Request : CallHead {
  Input input;
  // What the client says it sent; some protocols do not tell.
  std::optional<models::Medium> medium;
  // Pictures that make one item: 2 for stereo, left and right in turn; the frames of a clip.
  int views = 1;
  // Of a clip's frames; 0 stands for the model's own. A video has its own.
  double frames_per_second = 0;
  // Of a picture or of both of a pair: all that the model is to see.
  std::optional<Region> region;
  // Of a request of one item. An empty layer is the model's last; another has to be one of the model's.
  std::optional<models::ExplanationWish> explain;
  // What the client calls the input, to begin an error's message with: "encoded", "raw", "input 'image'".
  std::string_view input_name;
  // What the protocol can say only once the model is known: options of another task, outputs that it lacks.
  // Pipeline::Check calls it, if there is one, before the request costs anything; its error is the client's.
  std::function<absl::Status(const models::Description&)> accepts;
  // Told now and then how much of the forward pass is done, from 0 to 1, on an instance's thread; must not
  // block. Models whose pass is short never tell.
  std::function<void(double done)> progress;
  // Makes the protocol's answer of the results, which it may take away; its error is the call's. Called at
  // most once, and then before the call is answered, so that what it takes is in the answer's timings and in
  // the metrics.
  std::function<absl::Status(Response& response)> encode;

  // Items in it: pictures, or pairs of them, or rows of tensors.
  int64_t size() const;
  // Bytes of the input as it came.
  int64_t bytes() const;
};

// What an item was like as it came.
struct SentItem {
  // Of the picture, upright; of a frame; of a plane.
  int width = 0;
  int height = 0;
  // Of a picture, as the network saw it: what it, or its region, was scaled to.
  models::Size scaled = {};
  // What of it the model saw, if not all: results are in its pixels.
  std::optional<Region> region = std::nullopt;
  // Of the frames that the network saw; clips alone.
  double frames_per_second = 0;
  // Of a volume.
  VoxelType voxels = VoxelType::kFloat32;
};

struct Response {
  std::string model;
  int64_t version = 0;
  // Of the model that answered; valid while the answer's callback runs.
  const models::Description* description = nullptr;
  // One result per item of the request, in its order, of the model's task; none is a models::Failure.
  std::vector<models::TaskResult> results;
  // Of a program, in the place of results: its outputs in the configuration's order, all rows.
  std::vector<Tensor> outputs;
  // If the request asked for one.
  std::optional<models::Explanation> explanation;
  // One per item (of a pair, the left picture); empty for tensor inputs.
  std::vector<SentItem> sent;
  Timings timings;
  // Items that shared the forward pass; the largest, if the request's pictures went through several.
  int64_t batch_size = 0;
  // Counts a large answer as in flight. Who sends it keeps this until it is sent: some clients never read.
  std::shared_ptr<const void> room = nullptr;

  // Of the results, and of their explanation.
  int64_t bytes() const;
};

}  // namespace saccade::server

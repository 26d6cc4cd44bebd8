// The server's internal request and response types, independent of any protocol and of LibTorch.
#pragma once

#include <atomic>
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
#include "models/api/attention_probe.h"
#include "models/api/description.h"
#include "models/tasks/result.h"
#include "models/tasks/tiles.h"
#include "server/core/byte_pieces.h"
#include "server/core/call_head.h"
#include "server/core/tensor.h"
#include "server/core/timings.h"

namespace saccade::server {

class AnswerCharge;

// A view of bytes that `owner` keeps alive (usually a gRPC message). Never copied.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

// A whole encoded file: a picture (JPEG, PNG, WebP, TIFF or BMP), a video to be turned into a clip, or a TIFF
// to be turned into a volume. The model's medium decides which.
struct EncodedPicture {
  SharedBytes data;
};

// 8-bit interleaved pixels. The protocol has checked that `data` holds `width * height * 3` bytes.
struct RawPicture {
  int width = 0;
  int height = 0;
  bool rgb = true;
  SharedBytes data;
};

enum class VoxelType { kUint8, kUint16, kFloat32 };

// Little-endian voxels, plane by plane and row by row. The protocol has checked that the sizes are positive
// and that `data` holds exactly the bytes that they require.
struct RawVolume {
  int depth = 0;
  int height = 0;
  int width = 0;
  VoxelType type = VoxelType::kFloat32;
  SharedBytes data;
};

// A rectangle of a picture, in pixels of the whole upright picture. x and y are not negative, width and
// height are positive.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

// Preprocessed fp32 input: pictures [count, 3 * views, height, width] or clips [count, frames, 3, height,
// width], both normalised, or volumes [count, 1, depth, height, width], which are not. `data` holds exactly
// the shape's bytes, little-endian. Results are in the tensor's own coordinates.
struct TensorInput {
  std::vector<int64_t> shape;
  BytePieces data;
};

using Picture = std::variant<EncodedPicture, RawPicture, RawVolume>;

// Named input tensors of a program. The protocol has checked that the number of bytes matches shape and type,
// and that BYTES tensors split into their elements.
struct NamedTensors {
  std::vector<Tensor> tensors;
  // First dimension of each tensor; 1 if the model has no batch dimension.
  int64_t rows = 1;
};

// Pictures that the decode pool has to prepare, or tensors that are ready.
using Input = std::variant<std::vector<Picture>, TensorInput, NamedTensors>;

struct Response;

struct Request : CallHead {
  Input input;
  // The medium that the client says it sent; unset if the protocol does not state it.
  std::optional<models::Medium> medium;
  // Number of pictures per item: 2 for stereo (left and right alternate), the number of frames for a clip.
  int views = 1;
  // Frame rate of a clip given as frames; 0 means the model's own rate. A video states its own.
  double frames_per_second = 0;
  // The part of the picture (for stereo: of both pictures) that the model shall see; unset means all of it.
  std::optional<Region> region;
  // Cuts the picture, or its region, into tiles; unset means the model's own. A size of 0 means none.
  std::optional<models::TileRules> tiles;
  // Requests attention maps; only for a request with one item. An empty layer means the model's last one, any
  // other name must be one of the model's layers.
  std::optional<models::ExplanationWish> explain;
  // True for a copy that a shadow version computes. It has no client, and is not counted as a request.
  bool is_copy = false;
  // Prefix of error messages about the input, in the client's terms: "encoded", "raw", "input 'image'".
  std::string_view input_name;
  // A check by the protocol that needs the model, e.g. for options of another task or unknown outputs. May be
  // null. Called before the request costs anything; an error is returned to the client.
  std::function<absl::Status(const models::Description&)> accepts;
  // Called from time to time with the finished fraction of the forward pass, from 0 to 1, on an instance
  // thread; must not block. Models with short passes never call it.
  std::function<void(double done)> progress;
  // Builds the protocol's answer from the results, which it may move from; an error fails the call. Called at
  // most once, before the call is answered, so that its time is part of the timings and the metrics.
  std::function<absl::Status(Response& response)> encode;

  // Whether encode() draws masks or compresses maps of the results, which takes long for large pictures.
  bool encodes_maps = false;

  // Memory that encode() takes for a map of a size that the client chose, in bytes; charged before the pass.
  int64_t map_bytes = 0;

  // Number of items: pictures, pairs of pictures, clips, or rows of tensors.
  int64_t size() const;
  // Size of the input as received, in bytes.
  int64_t bytes() const;
};

// Properties of an item as the client sent it.
struct SentItem {
  // Size of the upright picture, of a frame, or of a plane.
  int width = 0;
  int height = 0;
  // Pictures only: the size to which the picture, or its region, was scaled for the network.
  models::Size scaled = {};
  // The part that the model saw, if not all; results are in pixels of this part.
  std::optional<Region> region = std::nullopt;
  // The tiles that the picture, or its region, was cut into, one item each; empty if it was not.
  std::vector<models::Tile> tiles = {};
  // Clips only: rate of the frames that the network saw.
  double frames_per_second = 0;
  // Volumes only.
  VoxelType voxels = VoxelType::kFloat32;
};

struct Response {
  std::string model;
  int64_t version = 0;
  // Description of the model that answered; valid only during the callback that delivers the response.
  const models::Description* description = nullptr;
  // One result per item, in the request's order, all of the model's task; none is a models::Failure.
  std::vector<models::TaskResult> results;
  // For programs, instead of `results`: the outputs in the configuration's order, with all rows.
  std::vector<Tensor> outputs;
  // Set if the request asked for attention maps.
  std::optional<models::Explanation> explanation;
  // One element per item (for stereo: the left picture); empty for tensor inputs.
  std::vector<SentItem> sent;
  Timings timings;
  // Number of items in the forward pass. If the request used several passes, that of the largest.
  int64_t batch_size = 0;
  // Number of forward passes.
  int passes = 0;
  // Asked by an encode() that takes long: an error if the client has gone or the deadline has passed. Null if
  // encode() need not ask.
  std::function<absl::Status()> still_wanted = nullptr;
  // Called by an encode() that takes much memory beside the results and the answer, before it allocates: with
  // the bytes that it holds at once. RESOURCE_EXHAUSTED if there is no room, INVALID_ARGUMENT if
  // there never is. Null if encode() takes little.
  std::function<absl::Status(int64_t bytes)> take_memory = nullptr;
  // Counts the pixels of masks that encode() draws, if the answer is made of several responses and bounds
  // them together. Null if it bounds those of this response.
  std::atomic<int64_t>* mask_pixels = nullptr;
  // Size of the protocol's answer, where encode() knows it; it may be larger than the results.
  int64_t answer_bytes = 0;
  // Keeps the bytes of a large answer counted as in flight; null for a small one. The sender holds it until
  // the answer is sent, because some clients never read.
  std::shared_ptr<const AnswerCharge> charge = nullptr;

  // Size of the results and of the explanation, in bytes.
  int64_t bytes() const;
};

// Size of results, and of tensors.
int64_t BytesOf(const std::vector<models::TaskResult>& results);
int64_t BytesOf(const std::vector<Tensor>& outputs);

}  // namespace saccade::server

// What the server speaks between its rooms: a request and its answer, free of any protocol and of LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/description.h"
#include "models/tasks/result.h"
#include "server/core/cancellation.h"

namespace saccade::server {

// Bytes that somebody else owns; `owner` keeps them alive (a gRPC message, mostly). Never copied.
struct SharedBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;
};

// A whole encoded picture: JPEG, PNG, WebP or BMP.
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

// Normalised fp32 pictures [count, 3 * views, height, width], ready for the network; `data` holds exactly the
// shape's bytes. Results are in the tensor's own coordinates.
struct TensorInput {
  std::vector<int64_t> shape;
  SharedBytes data;
};

using Picture = std::variant<EncodedPicture, RawPicture>;

// Either pictures that the decode pool has to prepare, or tensors that are ready.
using Input = std::variant<std::vector<Picture>, TensorInput>;

struct Request {
  std::string model;
  // 0 is the highest version that is ready.
  int64_t version = 0;
  std::string id;
  Input input;
  // Pictures that make one item: 2 for stereo, left and right in turn.
  int views = 1;
  int priority = 0;
  absl::Time arrival;
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline = absl::InfiniteFuture();
  std::shared_ptr<Cancellation> cancellation;
  // For metrics alone: "grpc", "oip".
  std::string_view protocol;
  // What the client calls the input, to begin an error's message with: "encoded", "raw", "input 'image'".
  std::string_view input_name;
  // What the protocol can say only once the model is known: options of another task, outputs that it lacks.
  // Pipeline::Check calls it, if there is one, before the request costs anything; its error is the client's.
  std::function<absl::Status(const models::Description&)> accepts;

  // Items in it: pictures, or pairs of them.
  int64_t size() const;
  // Bytes of the input as it came.
  int64_t bytes() const;
};

struct Timings {
  absl::Duration decode = absl::ZeroDuration();
  absl::Duration queue = absl::ZeroDuration();
  absl::Duration infer = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();
};

struct PictureSize {
  int width = 0;
  int height = 0;
};

struct Response {
  std::string model;
  int64_t version = 0;
  // Of the model that answered; valid while the answer's callback runs.
  const models::Description* description = nullptr;
  // One result per item of the request, in its order, of the model's task; none is a models::Failure.
  std::vector<models::TaskResult> results;
  // The items' pictures as decoded, upright (the left one of a pair); empty for tensor inputs.
  std::vector<PictureSize> pictures;
  Timings timings;
  // Items that shared the forward pass; the largest, if the request's pictures went through several.
  int64_t batch_size = 0;
};

}  // namespace saccade::server

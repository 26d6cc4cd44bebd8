// What the daemon tells, as plain structs: no protobuf or gRPC header is needed to use the client.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace saccade::client {

struct ScoredClass {
  int64_t index = 0;
  // Empty if the model has no class names.
  std::string label;
  float probability = 0;
  float logit = 0;
};

// Where the time went. All but round_trip are the daemon's own measurements.
struct Timings {
  absl::Duration decode;
  absl::Duration queue;
  absl::Duration infer;
  absl::Duration total;
  // From before the request was serialised until its answer was read, as this client saw it.
  absl::Duration round_trip;
};

struct Classification {
  std::string model;
  int64_t version = 0;
  std::string request_id;
  // Most probable first.
  std::vector<ScoredClass> classes;
  Timings timings;
  // How many pictures shared the forward pass.
  int batch_size = 0;
  // Of the decoded picture, after its EXIF orientation was applied.
  int picture_width = 0;
  int picture_height = 0;
};

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
  int input_width = 0;
  int input_height = 0;
  int64_t classes = 0;
  std::vector<std::string> labels;
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

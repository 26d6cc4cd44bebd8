// The model repository: Triton's folder layout, read into what the daemon needs to load a model.
//
//   ROOT/NAME/config.pbtxt            see proto/inference/model_config.proto
//   ROOT/NAME/labels.txt              one class name a line; optional
//   ROOT/NAME/<version>/<weights>     see versions.h
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/batching/batcher_options.h"
#include "server/core/inflight.h"

namespace saccade::server {

// config.pbtxt and labels.txt of one model, checked.
struct ModelSettings {
  std::string name;
  std::string architecture;
  // Every parameter that the repository does not use itself. The architecture refuses the ones it does not
  // know.
  std::map<std::string, std::string> options;
  // The classes' names by index; empty if the model has no labels file.
  std::vector<std::string> labels;
  // Copies of the model that compute at the same time, 1 to 64.
  int instances = 1;
  std::optional<int> gpu = std::nullopt;  // where they compute; none: the CPU
  // Whether each instance keeps to cores of its own.
  bool pin = false;
  // max_queue_size 0 takes the daemon's own bound, threads 0 the daemon's --threads-per-instance.
  BatcherOptions batching = {.max_queue_size = 0, .threads = 0};
  // Whether answers leave in the order in which their requests came.
  bool preserve_ordering = false;
  // How much of this model's may be in flight; 0 leaves it to the server's own bounds.
  Inflight most_inflight = {};
};

struct ModelVersion {
  int64_t version = 0;
  // Canonical: no symbolic link is left in it, and it lies inside the repository.
  std::string weights_path;
};

struct ModelEntry {
  ModelSettings settings;
  // At least one, ascending.
  std::vector<ModelVersion> versions;
};

struct BrokenModel {
  // The folder's name, escaped where it is not printable ASCII: it may be put into a log or an answer as it
  // is.
  std::string name;
  absl::Status status;
};

// What a repository holds. One broken model does not hide the others.
struct Scan {
  // Both sorted by name.
  std::vector<ModelEntry> models;
  std::vector<BrokenModel> broken;
};

// Reads the whole repository; blocks on the file system. Hidden folders and plain files are passed over. An
// error only if the repository itself cannot be read. Thread-safe.
absl::StatusOr<Scan> ScanRepository(const std::string& repository);

// Reads one model; blocks on the file system. NOT_FOUND if there is no such folder, INVALID_ARGUMENT if
// `name` is not a model name or the model is broken. Thread-safe.
absl::StatusOr<ModelEntry> ReadModel(const std::string& repository, absl::string_view name);

// [A-Za-z0-9._-]{1,128}, not beginning with a dot. What is no model name never reaches the file system.
absl::Status CheckModelName(absl::string_view name);

}  // namespace saccade::server

// The model repository: Triton's folder layout, read into what the daemon needs to load a model.
//
//   ROOT/NAME/config.pbtxt            see proto/inference/model_config.proto
//   ROOT/NAME/labels.txt              one class name a line; optional
//   ROOT/NAME/warmup/<file>           what model_warmup names; optional
//   ROOT/NAME/<version>/<weights>     see versions.h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

struct ModelVersion {
  int64_t version = 0;
  // Canonical: no symbolic link is left in it, and it lies inside the repository. Empty of an ensemble.
  std::string weights_path = {};
  // What is wrong with this version alone.
  absl::Status status = {};
};

struct ModelEntry {
  ModelSettings settings;
  // Those that the version policy serves: at least one, ascending.
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

struct ReadOptions {
  // Whether what a configuration leaves out is taken from the model's own files (completion.h), and a missing
  // config.pbtxt is an empty one.
  bool complete = true;
  // Of ReadModel: stands for config.pbtxt, as protobuf's JSON.
  std::optional<std::string> config_json = std::nullopt;
};

// Reads the whole repository; blocks on the file system. Hidden folders and plain files are passed over. An
// error only if the repository itself cannot be read. Thread-safe.
absl::StatusOr<Scan> ScanRepository(const std::string& repository, const ReadOptions& options = {});

// Reads one model; blocks on the file system. NOT_FOUND if there is no such folder, INVALID_ARGUMENT if
// `name` is not a model name or the model is broken. Thread-safe.
absl::StatusOr<ModelEntry> ReadModel(const std::string& repository, absl::string_view name,
                                     const ReadOptions& options = {});

// [A-Za-z0-9._-]{1,128}, not beginning with a dot. What is no model name never reaches the file system.
absl::Status CheckModelName(absl::string_view name);

}  // namespace saccade::server

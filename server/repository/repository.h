// Reads a model repository with Triton's folder layout:
//
//   ROOT/NAME/config.pbtxt            see proto/inference/model_config.proto
//   ROOT/NAME/saccade.json            describes a program's pictures and outputs; optional
//   ROOT/NAME/SHA256SUMS              checksums of all other files (checksums.h); optional
//   ROOT/NAME/labels.txt              one class name per line; optional
//   ROOT/NAME/warmup/<file>           files that model_warmup names; optional
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
  // The canonical path of the version's folder, and the file's name in it. The name may be a symbolic link
  // to a file in the repository: the files beside it count, and its ending, not the target's. Empty for an
  // ensemble.
  std::string weights_path = {};
  // The same for weights.int8.safetensors, which `saccade quantize` writes; empty if the version has none.
  std::string int8_weights_path = {};
  // Error of this version alone.
  absl::Status status = {};
};

struct ModelEntry {
  ModelSettings settings;
  // The versions that the version policy selects: at least one, ascending.
  std::vector<ModelVersion> versions;
};

struct BrokenModel {
  // The name of the folder, escaped where it is not printable ASCII, so that it can be put into a log or an
  // answer.
  std::string name;
  absl::Status status;
};

// Contents of a repository. A broken model does not hide the others.
struct Scan {
  // Both are sorted by name.
  std::vector<ModelEntry> models;
  std::vector<BrokenModel> broken;
};

struct ReadOptions {
  // Whether to complete configurations from the model's own files (completion.h), and to treat a missing
  // config.pbtxt as an empty one.
  bool complete = true;
  // For ReadModel: replaces config.pbtxt, in protobuf's JSON format.
  std::optional<std::string> config_json = std::nullopt;
};

// Reads the whole repository. Hidden folders and plain files are skipped. Returns an error only if the
// repository itself cannot be read. Blocks on the file system. Thread-safe.
absl::StatusOr<Scan> ScanRepository(const std::string& repository, const ReadOptions& options = {});

// Reads one model. NOT_FOUND if there is no such folder, INVALID_ARGUMENT if `name` is not a model name or
// the model is broken. Blocks on the file system. Thread-safe.
absl::StatusOr<ModelEntry> ReadModel(const std::string& repository, absl::string_view name,
                                     const ReadOptions& options = {});

// INVALID_ARGUMENT unless `name` matches [A-Za-z0-9._+% -]{1,128}, does not begin with a dot, and neither
// begins nor ends with a space. Other names are never used as paths.
absl::Status CheckModelName(absl::string_view name);

}  // namespace saccade::server

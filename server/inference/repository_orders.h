// Requests to the model repository in Triton's terms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/inference/parameters.h"

namespace saccade::server {

absl::string_view NameOf(ModelSnapshot::State state);

// All models, or only the ready ones. An ensemble with a step that is not ready is unavailable. Thread-safe.
std::vector<IndexEntry> IndexOf(const Catalog& catalog, bool ready_alone);

// From the parameters of a load: the configuration that replaces config.pbtxt, if given. INVALID_ARGUMENT for
// unknown parameters, values that are not text, and a configuration that is too large; UNIMPLEMENTED for
// files.
absl::StatusOr<std::optional<std::string>> LoadConfigOf(const NamedParameters& parameters);

// From the parameters of an unload: whether to unload an ensemble's models too. Errors as above.
absl::StatusOr<bool> UnloadsDependents(const NamedParameters& parameters);

}  // namespace saccade::server

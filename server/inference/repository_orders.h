// What clients may ask of the repository, and are told of it, in Triton's words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/inference/parameters.h"
#include "server/pipeline/catalog.h"

namespace saccade::server {

absl::string_view NameOf(ModelSnapshot::State state);

// What there is, or of it what is ready. Thread-safe.
std::vector<IndexEntry> IndexOf(const Catalog& catalog, bool ready_alone);

// Of a load: the configuration in place of config.pbtxt, if it brings one. INVALID_ARGUMENT for what is no
// text or unknown; UNIMPLEMENTED for files.
absl::StatusOr<std::optional<std::string>> LoadConfigOf(const NamedParameters& parameters);

// Of an unload: whether an ensemble's models go as well. Errors as above.
absl::StatusOr<bool> UnloadsDependents(const NamedParameters& parameters);

}  // namespace saccade::server

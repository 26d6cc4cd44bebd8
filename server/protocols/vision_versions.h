// Which version of a model a message of saccade.v1 means.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/pipeline/catalog.h"
#include "server/protocols/vision_errors.h"

namespace saccade::server {

// Its number, or the one that its label stands for. INVALID_ARGUMENT if it has both, or an unknown label;
// NOT_FOUND if the model that should have it is unknown.
template <typename Message>
absl::StatusOr<int64_t> VersionOf(const Catalog& catalog, const Message& message) {
  if (message.version_label().empty()) return message.version();
  if (message.version() != 0)
    return InvalidField("version_label", "stands beside a version; send one of them");
  return catalog.VersionOf(message.model(), message.version_label());
}

}  // namespace saccade::server

// Resolves the version that a message of saccade.v1 names.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/catalog/catalog.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/messages.h"

namespace saccade::server {

// The version's number, or the number of its label. INVALID_ARGUMENT if the message has both or the label is
// unknown; NOT_FOUND if a label's model is unknown.
template <typename Message>
absl::StatusOr<int64_t> VersionOf(const Catalog& catalog, const Message& message) {
  if (message.version_label().empty()) return message.version();
  if (message.version() != 0)
    return InvalidField("version_label", "is set together with version; set only one of them");
  return catalog.VersionOf(message.model(), message.version_label());
}

// The request, with its version resolved.
inline absl::StatusOr<Request> RequestOf(const Catalog& catalog, const v1::PredictRequest& message) {
  auto request = FromMessage(message);
  const auto version = request.ok() ? VersionOf(catalog, message) : request.status();
  if (!version.ok()) return version.status();
  request->version = *version;
  return request;
}

}  // namespace saccade::server

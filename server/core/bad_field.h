// Attaches to an error status the name of the request field that caused it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

inline constexpr char kBadFieldPayload[] = "saccade/bad-field";

inline void SetBadField(absl::Status& status, absl::string_view field) {
  status.SetPayload(kBadFieldPayload, absl::Cord(field));
}

inline std::optional<std::string> BadFieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kBadFieldPayload);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

}  // namespace saccade::server

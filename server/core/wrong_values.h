// Marks an INVALID_ARGUMENT that is about values of the input, which a model found while it computed. If
// another model has made them, the request is not wrong.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace saccade::server {

inline constexpr char kWrongValuesPayload[] = "saccade/wrong-values";

inline void SetWrongValues(absl::Status& status) { status.SetPayload(kWrongValuesPayload, absl::Cord()); }

inline bool HasWrongValues(const absl::Status& status) {
  return status.GetPayload(kWrongValuesPayload).has_value();
}

}  // namespace saccade::server

// Marks an INVALID_ARGUMENT that a model reported about the values of its input, such as NaN. If another
// model made the input, as in an ensemble, the client's request is not at fault.
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

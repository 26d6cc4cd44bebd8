// Helpers shared by all kinds of input: memory charged to the ticket, and errors in terms of the client's
// request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/predict_call.h"

namespace saccade::server {

// Admission counts pixels of three bytes. The number of such pixels that take the memory of `floats` floats,
// rounded up: three floats are four pixels.
constexpr int64_t PixelsOf(int64_t floats) { return (4 * floats + 2) / 3; }

// Allocates `floats` uninitialised floats. RESOURCE_EXHAUSTED if memory is insufficient.
absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats);

// Prefixes an error with the name of the input and, if the request has several items, the item's index:
// "encoded: ", "input 'image': picture 3: ". `kind` is the word for an item.
absl::Status AtItem(const absl::Status& status, const Request& request, const char* kind, int64_t item,
                    const std::string& part = "");

}  // namespace saccade::server

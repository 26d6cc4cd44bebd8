// What all kinds of input share on their way to being items: room that is charged, and errors in the client's
// words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// Admission counts pixels of three bytes; so many floats take as much as these. A pixel of three floats is
// four.
constexpr int64_t PixelsOf(int64_t floats) { return (4 * floats + 2) / 3; }

// Room for so many floats, their values not set. RESOURCE_EXHAUSTED if there is none.
absl::StatusOr<std::unique_ptr<float[]>> Allocate(int64_t floats);

// An error that begins with the input's name and, if the request has several items, which of them it is
// about: "encoded: ", "input 'image': picture 3: ". `kind` is what an item is called.
absl::Status AtItem(const absl::Status& status, const Request& request, const char* kind, int64_t item,
                    const std::string& part = "");

}  // namespace saccade::server

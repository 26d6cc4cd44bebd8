// Bounds of a JSON text, found much faster than by parsing it.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// Maximum number of values and member names of a text whose values are not a tensor's elements. No valid
// request has so many, and each takes far more memory than the two bytes that it may have in the text.
inline constexpr size_t kMaxJsonValues = size_t{1} << 16;

// A number that is longer than twice this many characters is refused, and one that is shorter than this is
// accepted. Parsers copy a number before they convert it.
inline constexpr size_t kMaxJsonNumber = 2048;

// Returns a number that is not below that of the values and member names in `text`.
size_t MaxJsonValuesIn(absl::string_view text);

// INVALID_ARGUMENT if a text has `values` values and names and that is more than kMaxJsonValues.
absl::Status CheckJsonValues(size_t values);

// The parts of a JSON text that a parser copies before it knows what they are.
struct JsonExtent {
  // Strings, member names included.
  size_t strings = 0;
  // Their length as written, without quotes.
  size_t string_bytes = 0;
  // Length of long stretches of brackets, commas and space, less up to twice kMaxJsonNumber for each.
  size_t structure_bytes = 0;
};

// Text that is not JSON is read to its end all the same; a string that does not end ends there.
// INVALID_ARGUMENT for a number that is too long, see kMaxJsonNumber.
absl::StatusOr<JsonExtent> MeasureJson(absl::string_view text);

}  // namespace saccade::server

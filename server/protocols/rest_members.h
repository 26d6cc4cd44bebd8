// The small JSON objects that Triton's extensions take: values by name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/inference/parameters.h"
#include "server/protocols/rest_value.h"

namespace saccade::server {

// The members of the object that `text` is, of which there are none if it is empty. INVALID_ARGUMENT names
// the member that is no text, number or truth value, or says that the text is no JSON, or has too many.
absl::StatusOr<RestParameters> ParseMembers(absl::string_view text);

// The members of the object "parameters" within it, beside which others are passed over. Errors as above.
absl::StatusOr<RestParameters> ParseParameters(absl::string_view text);

// They point into `members`.
NamedParameters Named(const RestParameters& members);

}  // namespace saccade::server

// Parses the small JSON objects of Triton's extensions: values by name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/inference/parameters.h"
#include "server/protocols/rest/value.h"

namespace saccade::server {

// The members of the JSON object `text`; none if `text` is empty. INVALID_ARGUMENT names a member that is not
// a string, number or boolean, or says that `text` is not JSON, is too long, has too many members, or more
// than kMaxJsonValues values and names, those of ignored members included.
// A member `ignored` may be anything.
absl::StatusOr<RestParameters> ParseMembers(absl::string_view text, absl::string_view ignored = "");

// The members of the object `name` in `text`; its other members are ignored. Errors as above.
absl::StatusOr<RestParameters> ParseMembersOf(absl::string_view name, absl::string_view text);

// The members of the object "parameters" in `text`, as ParseMembersOf().
absl::StatusOr<RestParameters> ParseParameters(absl::string_view text);

// The result refers to `members`.
NamedParameters Named(const RestParameters& members);

}  // namespace saccade::server

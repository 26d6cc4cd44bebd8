#include "server/engine/item_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/shed_reason.h"

namespace saccade::server {

absl::Status AtItem(const absl::Status& status, const Request& request, const char* kind, int64_t item,
                    const std::string& part) {
  // The call has ended, not its input.
  if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) return status;
  std::string where = absl::StrCat(std::string(request.input_name), ": ");
  if (request.size() > 1) absl::StrAppend(&where, kind, " ", item, ": ");
  absl::Status placed(status.code(), absl::StrCat(where, part, status.message()));
  // Exhausted memory counts as decoded bytes, unless the status already carries a reason.
  if (absl::IsResourceExhausted(status)) SetShedReason(placed, ShedReason::kDecodedBytes);
  status.ForEachPayload(
      [&placed](absl::string_view type, const absl::Cord& payload) { placed.SetPayload(type, payload); });
  return placed;
}

}  // namespace saccade::server

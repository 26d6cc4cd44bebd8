#include "server/batching/batch_task.h"

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::Status CheckAlive(const BatchTask::Traits& task, absl::Time now) {
  if (task.cancelled()) {
    return absl::CancelledError(absl::StrCat("the client cancelled the request, ",
                                             absl::FormatDuration(now - task.arrival), " after it arrived"));
  }
  if (task.deadline <= now) {
    return absl::DeadlineExceededError(
        absl::StrCat("the deadline passed before the request could run: it has waited ",
                     absl::FormatDuration(now - task.arrival), " and had ",
                     absl::FormatDuration(task.deadline - task.arrival), " when it arrived"));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server

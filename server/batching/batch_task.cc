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

void DropDead(std::vector<std::unique_ptr<BatchTask>>& tasks, absl::Time now) {
  std::erase_if(tasks, [now](const std::unique_ptr<BatchTask>& task) {
    absl::Status alive = CheckAlive(task->traits(), now);
    if (alive.ok()) return false;
    task->Reject(std::move(alive));
    return true;
  });
}

}  // namespace saccade::server

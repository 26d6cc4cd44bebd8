#include "server/simulation/online_policy.h"

#include <utility>
#include <vector>

namespace saccade::server::simulation {

absl::Status OnlinePolicy::Push(int /*model*/, std::unique_ptr<BatchTask>& task, absl::Time now) {
  last_arrival_ = now;
  queue_.push_back(std::move(task));
  return absl::OkStatus();
}

std::unique_ptr<BatchTask> OnlinePolicy::TakeFirst() {
  std::unique_ptr<BatchTask> first = std::move(queue_.front());
  queue_.pop_front();
  return first;
}

std::optional<Policy::Batch> OnlinePolicy::Next(absl::Time now) {
  wake_at_ = absl::InfiniteFuture();
  if (!idle_ || queue_.empty()) return std::nullopt;
  const auto slots = [&](absl::Time since) { return Nanos(now - since) / plan_->slot(); };
  std::vector<double> ages;
  ages.reserve(queue_.size());
  for (const auto& task : queue_) ages.push_back(slots(task->arrival()));
  const OnlinePlan::Choice choice = plan_->Choose(ages, slots(last_arrival_));
  for (int64_t i = 0; i < choice.late; ++i)
    TakeFirst()->Reject(absl::DeadlineExceededError("the request would be late in the best batch"));
  if (choice.batch == 0) {
    if (!queue_.empty()) wake_at_ = now + ToDuration(plan_->slot());
    return std::nullopt;
  }
  Batch batch;
  for (int64_t i = 0; i < choice.batch; ++i) batch.tasks.push_back(TakeFirst());
  idle_ = false;
  return batch;
}

void OnlinePolicy::Finished(int /*model*/, int /*instance*/, absl::Time /*now*/, bool /*learn*/) {
  idle_ = true;
}

}  // namespace saccade::server::simulation

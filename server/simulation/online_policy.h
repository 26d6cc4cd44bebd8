// Decides by an OnlinePlan: the policy that knows the distribution of the arrivals. For one model with one
// instance, one bucket, and requests of one item with the plan's deadline.
#pragma once

#include <deque>
#include <memory>

#include "server/simulation/online_plan.h"
#include "server/simulation/policy.h"

namespace saccade::server::simulation {

class OnlinePolicy final : public Policy {
 public:
  explicit OnlinePolicy(std::shared_ptr<const OnlinePlan> plan) : plan_(std::move(plan)) {}

  absl::Status Push(int model, std::unique_ptr<BatchTask>& task, absl::Time now) override;
  std::optional<Batch> Next(absl::Time now) override;
  void Finished(int model, int instance, absl::Time now, bool learn) override;
  absl::Time wake_at() const override { return wake_at_; }

 private:
  std::unique_ptr<BatchTask> TakeFirst();

  const std::shared_ptr<const OnlinePlan> plan_;
  // By arrival.
  std::deque<std::unique_ptr<BatchTask>> queue_;
  absl::Time last_arrival_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfiniteFuture();
  bool idle_ = true;
};

}  // namespace saccade::server::simulation

#include "server/decode/decode_queue.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"

namespace saccade::server {
namespace {

// Weight of the newest job in averages.
constexpr double kNewest = 0.1;

void Average(double& average, double newest) {
  average = average == 0 ? newest : average + kNewest * (newest - average);
}

}  // namespace

DecodeQueue::Pushed DecodeQueue::Push(const Order& order, Job job) {
  std::unique_ptr<Model>& known = models_[order.model];
  if (known == nullptr) known = std::make_unique<Model>();
  Model& model = *known;
  model.weight = order.weight;
  if (model.jobs.empty()) model.used = std::max(model.used, served_);
  const ModelJobs::Key key = {order.client, order.may_be_long, {order.priority, order.deadline, pushed_++}};
  if (size_ >= max_jobs_ && !order.may_replace) {
    CountRejected(model, order.done_in_any_case);
    Forget(models_.find(order.model));
    return {.taken = false, .removed = std::move(job)};
  }
  ModelJobs::Waiting waiting = {.job = std::move(job),
                                .may_be_long = order.may_be_long,
                                .done_in_any_case = order.done_in_any_case,
                                .model = order.model};
  if (size_ >= max_jobs_) return PushWithoutRoom(order.model, model, key, std::move(waiting));
  Insert(order.model, model, key, std::move(waiting));
  return {};
}

void DecodeQueue::Insert(const std::string& name, Model& model, const ModelJobs::Key& key,
                         ModelJobs::Waiting waiting) {
  const bool is_first = model.jobs.empty();
  if (is_first) model.turn = turns_.emplace(model.used, name).first;
  absl::Cleanup undo = [&] {
    if (is_first) turns_.erase(model.turn);
  };
  model.jobs.Insert(key.client, key.position, std::move(waiting));
  std::move(undo).Cancel();
  ++size_;
  if (key.may_be_long) ++long_waiting_;
}

void DecodeQueue::CountRemoved(const Model& model, const ModelJobs::Waiting& removed) {
  --size_;
  if (removed.may_be_long) --long_waiting_;
  if (model.jobs.empty()) turns_.erase(model.turn);
}

DecodeQueue::Pushed DecodeQueue::PushWithoutRoom(const std::string& name, Model& model,
                                                 const ModelJobs::Key& key, ModelJobs::Waiting waiting) {
  // There are as few models with jobs as there are jobs.
  Models::iterator most = models_.find(name);
  double crowding = model.crowding(1);
  for (const auto& [used, other] : turns_) {
    const auto found = models_.find(other);
    if (found->second->crowding() <= crowding) continue;
    most = found;
    crowding = found->second->crowding();
  }
  Model& crowded = *most->second;
  const auto last = crowded.jobs.FindLast(&crowded == &model ? &key : nullptr);
  if (!last || crowded.jobs.At(*last).job.reject == nullptr) {
    CountRejected(model, waiting.done_in_any_case);
    Forget(models_.find(name));
    return {.taken = false, .removed = std::move(waiting.job)};
  }
  Insert(name, model, key, std::move(waiting));
  ModelJobs::Waiting removed = crowded.jobs.Remove(*last);
  CountRemoved(crowded, removed);
  CountRejected(crowded, removed.done_in_any_case);
  Forget(most);
  return {.taken = true, .removed = std::move(removed.job)};
}

std::optional<DecodeQueue::Taken> DecodeQueue::Pop() {
  for (const auto& [used, turn] : turns_) {
    Model& model = *models_.find(turn)->second;
    if (!may_start_long() && model.jobs.all_long()) continue;
    return Take(model);
  }
  return std::nullopt;
}

DecodeQueue::Taken DecodeQueue::Take(Model& model) {
  served_ = std::max(served_, model.used);
  ModelJobs::Taken removed = model.jobs.Take(may_start_long(), model.usual);
  CountRemoved(model, removed.waiting);
  Taken taken = {.job = std::move(removed.waiting.job),
                 .model = std::move(removed.waiting.model),
                 .client = std::move(removed.client),
                 .charged = absl::Seconds(model.usual),
                 .may_be_long = removed.waiting.may_be_long};
  if (taken.may_be_long) ++long_running_;
  Use(model, model.usual);
  return taken;
}

void DecodeQueue::Done(const Taken& taken, absl::Duration took) {
  const auto found = models_.find(taken.model);
  Model& model = *found->second;
  if (taken.may_be_long) --long_running_;
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(took));
  demand_ += seconds;
  Average(model.usual, seconds);
  Average(usual_, seconds);
  const double beyond = seconds - absl::ToDoubleSeconds(taken.charged);
  model.jobs.Done(taken.client, beyond);
  Use(model, beyond);
  Forget(found);
}

// A model of which no job has ended yet is taken to be like the others.
void DecodeQueue::CountRejected(const Model& model, bool done_in_any_case) {
  if (!done_in_any_case) demand_ += model.usual == 0 ? usual_ : model.usual;
}

void DecodeQueue::Use(Model& model, double seconds) {
  model.used += seconds / model.weight;
  if (model.jobs.empty()) return;
  auto turn = turns_.extract(model.turn);
  turn.value().first = model.used;
  model.turn = turns_.insert(std::move(turn)).position;
}

// A model that does nothing and is not ahead of the others is as good as a new one.
void DecodeQueue::Forget(Models::iterator model) {
  if (model->second->jobs.empty() && model->second->jobs.running() == 0 && model->second->used <= served_)
    models_.erase(model);
}

}  // namespace saccade::server

#include "server/decode/decode_queue.h"

#include <algorithm>
#include <iterator>

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
  const Position position = {order.priority, order.deadline, pushed_++};
  if (size_ >= max_jobs_ && !order.may_replace) {
    CountRejected(model, order.done_in_any_case);
    Forget(models_.find(order.model));
    return {.taken = false, .removed = std::move(job)};
  }
  Waiting waiting = {
      .job = std::move(job), .may_be_long = order.may_be_long, .done_in_any_case = order.done_in_any_case};
  if (size_ >= max_jobs_) return PushWithoutRoom(order.model, model, position, std::move(waiting));
  if (model.jobs.empty()) turns_.emplace(model.used, order.model);
  Insert(model, position, std::move(waiting));
  return {};
}

void DecodeQueue::Insert(Model& model, const Position& position, Waiting waiting) {
  const bool may_be_long = waiting.may_be_long;
  model.jobs.emplace(position, std::move(waiting));
  ++size_;
  if (!may_be_long) return;
  ++model.long_jobs;
  ++long_waiting_;
}

DecodeQueue::Waiting DecodeQueue::Remove(Model& model, Jobs::iterator job) {
  Waiting removed = std::move(job->second);
  model.jobs.erase(job);
  --size_;
  if (!removed.may_be_long) return removed;
  --model.long_jobs;
  --long_waiting_;
  return removed;
}

DecodeQueue::Pushed DecodeQueue::PushWithoutRoom(const std::string& name, Model& model,
                                                 const Position& position, Waiting waiting) {
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
  const bool own = &crowded == &model;
  const auto last = crowded.jobs.empty() ? crowded.jobs.end() : std::prev(crowded.jobs.end());
  if (last == crowded.jobs.end() || last->second.job.reject == nullptr || (own && last->first < position)) {
    CountRejected(model, waiting.done_in_any_case);
    Forget(models_.find(name));
    return {.taken = false, .removed = std::move(waiting.job)};
  }
  CountRejected(crowded, last->second.done_in_any_case);
  Waiting removed = Remove(crowded, last);
  if (!own && crowded.jobs.empty()) turns_.erase({crowded.used, most->first});
  if (model.jobs.empty() && !own) turns_.emplace(model.used, name);
  Insert(model, position, std::move(waiting));
  if (!own) Forget(most);
  return {.taken = true, .removed = std::move(removed.job)};
}

std::optional<DecodeQueue::Taken> DecodeQueue::Pop() {
  for (const auto& [used, turn] : turns_) {
    Model& model = *models_.find(turn)->second;
    auto first = model.jobs.begin();
    if (!may_start_long()) {
      if (model.long_jobs == model.jobs.size()) continue;
      while (first->second.may_be_long) ++first;
    }
    // A copy, because the turn is erased.
    const std::string name = turn;
    return Take(name, model, first);
  }
  return std::nullopt;
}

DecodeQueue::Taken DecodeQueue::Take(const std::string& name, Model& model, Jobs::iterator job) {
  served_ = std::max(served_, model.used);
  Waiting removed = Remove(model, job);
  Taken taken = {.job = std::move(removed.job),
                 .model = name,
                 .charged = absl::Seconds(model.usual),
                 .may_be_long = removed.may_be_long};
  ++model.running;
  if (taken.may_be_long) ++long_running_;
  if (model.jobs.empty()) turns_.erase({model.used, name});
  Use(name, model, model.usual);
  return taken;
}

void DecodeQueue::Done(const Taken& taken, absl::Duration took) {
  const auto found = models_.find(taken.model);
  Model& model = *found->second;
  --model.running;
  if (taken.may_be_long) --long_running_;
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(took));
  demand_ += seconds;
  Average(model.usual, seconds);
  Average(usual_, seconds);
  Use(taken.model, model, seconds - absl::ToDoubleSeconds(taken.charged));
  Forget(found);
}

// A model of which no job has ended yet is taken to be like the others.
void DecodeQueue::CountRejected(const Model& model, bool done_in_any_case) {
  if (!done_in_any_case) demand_ += model.usual == 0 ? usual_ : model.usual;
}

void DecodeQueue::Use(const std::string& name, Model& model, double seconds) {
  if (!model.jobs.empty()) turns_.erase({model.used, name});
  model.used += seconds / model.weight;
  if (!model.jobs.empty()) turns_.emplace(model.used, name);
}

// A model that does nothing and is not ahead of the others is as good as a new one.
void DecodeQueue::Forget(Models::iterator model) {
  if (model->second->jobs.empty() && model->second->running == 0 && model->second->used <= served_)
    models_.erase(model);
}

}  // namespace saccade::server

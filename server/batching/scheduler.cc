#include "server/batching/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/model_queue.h"

namespace saccade::server {
namespace {

// A pass that runs longer no longer keeps others off the cores: from here on the operating system shares
// them.
constexpr int64_t kLongPass = 1'000'000'000;
// By so many of the longest passes a model may be ahead of its share to meet a deadline.
constexpr double kCredit = 2;

struct Instance {
  bool holds_cores = false;
  int64_t started = 0;
  int64_t bucket = 0;
  int64_t size = 0;
  // What the pass was expected to take, and was charged for.
  double charged = 0;
};

struct Model {
  Model(const BatcherOptions& options, int count) : queue(options), instances(count) {
    for (int i = count; i-- > 0;) idle.push_back(i);
  }

  double threads() const { return queue.options().threads; }
  double weight() const { return queue.options().weight; }
  bool Wants() const { return !queue.empty() && !idle.empty(); }

  ModelQueue queue;
  std::vector<Instance> instances;
  std::vector<int> idle;
  bool closed = false;
  // The device's time it has had, in nanoseconds of one core, over its weight.
  double had = 0;
  // When its instances are expected to be idle again, summed over those that compute.
  double ends = 0;
};

absl::Status Closed() {
  return absl::UnavailableError(
      "the model takes no more requests: it is being unloaded or the server is shutting down; try another "
      "replica");
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(const SchedulerOptions& scheduler_options) : options(scheduler_options) {}

  struct Choice {
    Model* model = nullptr;
    ModelQueue::Due due;
  };

  // How many of the model's instances can compute at the same time, given what the others have to do.
  double Instances(const Model& model) const {
    double weights = 0;
    for (const auto& other : models) {
      if (other == nullptr) continue;
      const bool busy = !other->queue.empty() || other->idle.size() < other->instances.size();
      if (busy || other.get() == &model) weights += other->weight();
    }
    const double fit = std::max(1.0, options.cores / model.threads());
    const auto own = static_cast<double>(model.instances.size());
    return std::max(0.05, std::min(own, fit * model.weight() / weights));
  }

  // How long the model's instances are taken by what they compute now.
  static double Ahead(const Model& model, int64_t now) {
    if (!model.idle.empty()) return 0;
    const auto busy = static_cast<double>(model.instances.size());
    // The first of them to end does so, on average, in this fraction of the mean.
    return std::max(0.0, model.ends / busy - static_cast<double>(now)) * 2 / (busy + 1);
  }

  // Cores that are held, and that models with work and an idle instance would take, one each, if there are
  // several.
  double Wanted() const {
    double wanted = held;
    int count = 0;
    for (const auto& model : models) {
      if (model == nullptr || !model->Wants()) continue;
      wanted += model->threads();
      ++count;
    }
    return count > 1 ? wanted : 0;
  }

  bool HasCores(const Model& model) const { return held == 0 || held + model.threads() <= options.cores; }

  // Takes the cores from passes that have had them too long.
  void FreeLongPasses(int64_t now) {
    for (const auto& model : models) {
      if (model == nullptr) continue;
      for (Instance& instance : model->instances) {
        if (!instance.holds_cores) continue;
        if (now - instance.started < kLongPass) {
          next_wake = std::min(next_wake, instance.started + kLongPass);
          continue;
        }
        instance.holds_cores = false;
        held -= model->threads();
      }
    }
  }

  std::optional<Choice> Choose(int64_t now, std::vector<Dropped>* dropped);
  Batch Start(const Choice& choice, ModelQueue::Tasks tasks, int64_t now);

  const SchedulerOptions options;
  // Null where one was removed.
  std::vector<std::unique_ptr<Model>> models;
  double held = 0;  // cores
  int64_t next_wake = kNever;
  // What the model furthest behind its share has had: who comes anew starts there.
  double served = 0;
  // The longest passes as of late, of one core.
  double longest = 0;
};

std::optional<Scheduler::Impl::Choice> Scheduler::Impl::Choose(int64_t now, std::vector<Dropped>* dropped) {
  std::vector<Choice> choices;
  next_wake = kNever;
  // Where models contend for the cores nobody waits for company: there is always somebody else to compute
  // for.
  const bool contended = Wanted() > options.cores;
  for (const auto& model : models) {
    if (model == nullptr || !model->Wants()) continue;
    Choice choice{model.get(), {}};
    const bool at_once = model->closed || contended;
    if (model->queue.FindDue(now, Instances(*model), at_once, &choice.due, &next_wake, dropped))
      choices.push_back(choice);
  }
  if (choices.empty()) return std::nullopt;
  const auto less_served = [](const Choice& a, const Choice& b) { return a.model->had < b.model->had; };
  const auto least = std::min_element(choices.begin(), choices.end(), less_served);
  served = std::max(served, least->model->had);
  const Choice* best = &*least;
  const double most = least->model->had + kCredit * longest / least->model->weight();
  // Somebody whose deadline is at stake goes before it, within limits.
  for (const Choice& choice : choices) {
    const bool urgent = static_cast<double>(choice.due.latest_start - now) < longest;
    if (!urgent || choice.model->had > most) continue;
    const bool best_urgent = static_cast<double>(best->due.latest_start - now) < longest;
    if (!best_urgent || choice.due.latest_start < best->due.latest_start) best = &choice;
  }
  if (HasCores(*best->model)) return *best;
  FreeLongPasses(now);
  if (HasCores(*best->model)) return *best;
  // It waits for cores. Smaller ones may use what there is, but not for ever.
  for (const Choice& choice : choices) {
    if (HasCores(*choice.model) && choice.model->had <= most) return choice;
  }
  return std::nullopt;
}

Scheduler::Batch Scheduler::Impl::Start(const Choice& choice, ModelQueue::Tasks tasks, int64_t now) {
  Model& model = *choice.model;
  const int index = model.idle.back();
  model.idle.pop_back();
  int64_t size = 0;
  for (const auto& task : tasks) size += task->size();
  const double cost = choice.due.bucket->latency.Mean(size);
  model.instances[index] = {true, now, choice.due.bucket->id, size, cost};
  model.had += cost * model.threads() / model.weight();
  model.ends += static_cast<double>(now) + cost;
  held += model.threads();
  longest = std::max(longest * 0.99, cost);
  return {0, index, std::move(tasks), absl::Nanoseconds(static_cast<int64_t>(cost))};
}

Scheduler::Scheduler(const SchedulerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Scheduler::~Scheduler() = default;

Scheduler::ModelId Scheduler::AddModel(const BatcherOptions& options, int instances) {
  auto model = std::make_unique<Model>(options, instances);
  model->had = impl_->served;
  for (size_t i = 0; i < impl_->models.size(); ++i) {
    if (impl_->models[i] != nullptr) continue;
    impl_->models[i] = std::move(model);
    return static_cast<ModelId>(i);
  }
  impl_->models.push_back(std::move(model));
  return static_cast<ModelId>(impl_->models.size()) - 1;
}

std::vector<std::unique_ptr<BatchTask>> Scheduler::RemoveModel(ModelId model) {
  std::vector<std::unique_ptr<BatchTask>> left = impl_->models.at(model)->queue.TakeAll();
  impl_->models[model] = nullptr;
  return left;
}

void Scheduler::Close(ModelId model) { impl_->models.at(model)->closed = true; }

void Scheduler::Learn(ModelId model, int64_t bucket, int64_t size, absl::Duration took) {
  impl_->models.at(model)->queue.Learn(bucket, size, absl::ToDoubleNanoseconds(took), 0);
}

absl::Status Scheduler::Push(ModelId id, std::unique_ptr<BatchTask>& task, absl::Time now,
                             std::vector<Dropped>* dropped) {
  Model& model = *impl_->models.at(id);
  if (model.closed) return Closed();
  const int64_t time = absl::ToUnixNanos(now);
  // Who had nothing to do for long has saved up no share.
  if (model.queue.empty() && model.idle.size() == model.instances.size())
    model.had = std::max(model.had, impl_->served - kCredit * impl_->longest / model.weight());
  return model.queue.Push(task, time, Impl::Ahead(model, time), impl_->Instances(model), dropped);
}

absl::Status Scheduler::Consider(ModelId id, const BatchTask::Traits& traits,
                                 absl::Span<const int64_t> buckets, absl::Time now,
                                 std::vector<Dropped>* dropped) {
  Model& model = *impl_->models.at(id);
  if (model.closed) return Closed();
  const int64_t time = absl::ToUnixNanos(now);
  return model.queue.Consider(traits, buckets, time, Impl::Ahead(model, time), impl_->Instances(model),
                              dropped);
}

std::optional<Scheduler::Batch> Scheduler::Next(absl::Time now, std::vector<Dropped>* dropped) {
  const int64_t time = absl::ToUnixNanos(now);
  while (const auto choice = impl_->Choose(time, dropped)) {
    ModelQueue::Tasks tasks = choice->model->queue.Take(*choice->due.bucket, time, dropped);
    // All of it was cancelled meanwhile.
    if (tasks.empty()) continue;
    Batch batch = impl_->Start(*choice, std::move(tasks), time);
    const auto is_it = [&](const auto& model) { return model.get() == choice->model; };
    batch.model = static_cast<ModelId>(std::find_if(impl_->models.begin(), impl_->models.end(), is_it) -
                                       impl_->models.begin());
    return batch;
  }
  return std::nullopt;
}

void Scheduler::Sweep(absl::Time now, std::vector<Dropped>* dropped) {
  for (const auto& model : impl_->models) {
    if (model != nullptr && model->idle.empty()) model->queue.SweepAll(absl::ToUnixNanos(now), dropped);
  }
}

void Scheduler::Finished(ModelId id, int index, absl::Time now, bool learn) {
  Model& model = *impl_->models.at(id);
  Instance& instance = model.instances.at(index);
  const int64_t time = absl::ToUnixNanos(now);
  const auto took = static_cast<double>(time - instance.started);
  model.queue.Learn(instance.bucket, instance.size, learn ? std::optional(took) : std::nullopt, time);
  model.had += (took - instance.charged) * model.threads() / model.weight();
  model.ends -= static_cast<double>(instance.started) + instance.charged;
  if (instance.holds_cores) impl_->held -= model.threads();
  instance.holds_cores = false;
  model.idle.push_back(index);
  if (model.idle.size() == model.instances.size()) model.ends = 0;
}

void Scheduler::NoRoomFor(ModelId model, int64_t bucket, int64_t size, absl::Time now) {
  impl_->models.at(model)->queue.NoRoomFor(bucket, size, absl::ToUnixNanos(now));
}

absl::Time Scheduler::wake_at() const {
  return impl_->next_wake == kNever ? absl::InfiniteFuture() : absl::FromUnixNanos(impl_->next_wake);
}

int64_t Scheduler::queued(ModelId model) const { return impl_->models.at(model)->queue.queued(); }
bool Scheduler::closed(ModelId model) const { return impl_->models.at(model)->closed; }

}  // namespace saccade::server

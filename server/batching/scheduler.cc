#include "server/batching/scheduler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/model_queue.h"

namespace saccade::server {
namespace {

// A pass that runs longer than this, in nanoseconds, no longer keeps others off the cores: the operating
// system shares them from then on.
constexpr int64_t kLongPass = 1'000'000'000;
// How far a model may exceed its share to meet a deadline, in multiples of the longest recent pass on the
// device. Also bounds the credit of a model that was idle.
constexpr double kCredit = 2;

struct Instance {
  // Index in Model::shares.
  size_t share = 0;
  bool holds_cores = false;
  int64_t started = 0;
  int64_t bucket = 0;
  int64_t size = 0;
  // Expected time of the pass in nanoseconds, which the model was charged for.
  double charged = 0;
};

struct Place;

// A model's instances on one device, and the device time that they used.
struct Share {
  Place* place = nullptr;
  int instances = 0;
  std::vector<int> idle = {};
  // Device time used, in nanoseconds of one core, divided by the model's weight.
  double had = 0;
};

struct Model {
  explicit Model(const BatcherOptions& options) : queue(options) {}

  double threads() const { return queue.options().threads; }
  double weight() const { return queue.options().weight; }
  bool Wants() const { return !queue.empty() && idle > 0; }
  bool Rests() const { return queue.empty() && idle == instances.size(); }

  const Share* At(const Place* place) const {
    for (const Share& share : shares) {
      if (share.place == place) return &share;
    }
    return nullptr;
  }

  ModelQueue queue;
  std::vector<Instance> instances;
  // One for each device on which it has instances.
  std::vector<Share> shares;
  // Number of idle instances, over all devices.
  size_t idle = 0;
  bool closed = false;
  // Sum of the expected end times of its running passes, in nanoseconds since the epoch.
  double ends = 0;
};

struct Choice {
  Model* model = nullptr;
  Share* share = nullptr;
  ModelQueue::Due due = {};

  double had() const { return share->had; }
};

struct Place {
  // Number of cores held by running passes.
  double held = 0;
  // Share::had of the model that is furthest behind its share; new models start there.
  double served = 0;
  // Longest recent pass, in nanoseconds.
  double longest = 0;
  // True if several models together need more cores, with one pass each, than there are. Then no batch waits
  // for more items, because there is always another one to compute.
  bool contended = false;
  // Candidates for the next batch, while one is chosen.
  std::vector<Choice> choices = {};
};

absl::Status Closed() {
  return absl::UnavailableError(
      "the model accepts no more requests: it is being unloaded or the server is shutting down; try another "
      "replica");
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(const SchedulerOptions& scheduler_options) : options(scheduler_options) {}

  // Number of the model's instances that can compute concurrently, given the other models' load; possibly a
  // fraction.
  double Instances(const Model& model) const {
    const double fit = std::max(1.0, options.cores / model.threads());
    double instances = 0;
    for (const Share& share : model.shares) {
      double weights = 0;
      for (const auto& other : models) {
        if (other == nullptr || other->At(share.place) == nullptr) continue;
        if (other.get() == &model || !other->Rests()) weights += other->weight();
      }
      instances += std::min<double>(share.instances, fit * model.weight() / weights);
    }
    return std::max(0.05, instances);
  }

  // Expected time until one of the model's instances is idle, in nanoseconds.
  static double Ahead(const Model& model, int64_t now) {
    if (model.idle > 0) return 0;
    const auto busy = static_cast<double>(model.instances.size());
    // With n busy instances, the first one ends after 2 / (n + 1) of the mean remaining time, on average.
    return std::max(0.0, model.ends / busy - static_cast<double>(now)) * 2 / (busy + 1);
  }

  void FindContended() {
    for (auto& [number, place] : places) {
      double wanted = place.held;
      int count = 0;
      for (const auto& model : models) {
        if (model == nullptr || !model->Wants()) continue;
        const Share* const share = model->At(&place);
        if (share == nullptr || share->idle.empty()) continue;
        wanted += model->threads();
        ++count;
      }
      place.contended = count > 1 && wanted > options.cores;
    }
  }

  bool HasCores(const Choice& choice) const {
    const double held = choice.share->place->held;
    return held == 0 || held + choice.model->threads() <= options.cores;
  }

  // Releases the cores of passes that have run longer than kLongPass.
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
        model->shares[instance.share].place->held -= model->threads();
      }
    }
  }

  void FindChoices(int64_t now, std::vector<Dropped>* dropped);
  const Choice* ChooseAt(Place& place, int64_t now);
  std::optional<Choice> Choose(int64_t now, std::vector<Dropped>* dropped);
  static Batch Start(const Choice& choice, ModelQueue::Tasks tasks, int64_t now);

  const SchedulerOptions options;
  // Null for a removed model.
  std::vector<std::unique_ptr<Model>> models;
  std::map<int, Place> places;
  int64_t next_wake = kNever;
};

// Collects for each device the models with a due batch and an idle instance there.
void Scheduler::Impl::FindChoices(int64_t now, std::vector<Dropped>* dropped) {
  FindContended();
  for (auto& [number, place] : places) place.choices.clear();
  for (const auto& model : models) {
    if (model == nullptr || !model->Wants()) continue;
    const bool at_once =
        model->closed || std::all_of(model->shares.begin(), model->shares.end(), [](const Share& share) {
          return share.idle.empty() || share.place->contended;
        });
    ModelQueue::Due due;
    if (!model->queue.FindDue(now, Instances(*model), at_once, &due, &next_wake, dropped)) continue;
    for (Share& share : model->shares) {
      if (!share.idle.empty()) share.place->choices.push_back({model.get(), &share, due});
    }
  }
}

// Returns the model that starts next on `place`, or null if none may start.
const Choice* Scheduler::Impl::ChooseAt(Place& place, int64_t now) {
  const std::vector<Choice>& choices = place.choices;
  if (choices.empty()) return nullptr;
  const auto less_served = [](const Choice& a, const Choice& b) { return a.had() < b.had(); };
  const auto min = std::min_element(choices.begin(), choices.end(), less_served);
  place.served = std::max(place.served, min->had());
  const Choice* best = &*min;
  const double max = min->had() + kCredit * place.longest / min->model->weight();
  // A model with an urgent deadline goes first, within the limit.
  for (const Choice& choice : choices) {
    const bool urgent = static_cast<double>(choice.due.latest_start - now) < place.longest;
    if (!urgent || choice.had() > max) continue;
    const bool best_urgent = static_cast<double>(best->due.latest_start - now) < place.longest;
    if (!best_urgent || choice.due.latest_start < best->due.latest_start) best = &choice;
  }
  if (HasCores(*best)) return best;
  FreeLongPasses(now);
  if (HasCores(*best)) return best;
  // `best` waits for cores. Meanwhile, models that fit may run until they exceed the limit.
  for (const Choice& choice : choices) {
    if (HasCores(choice) && choice.had() <= max) return &choice;
  }
  return nullptr;
}

std::optional<Choice> Scheduler::Impl::Choose(int64_t now, std::vector<Dropped>* dropped) {
  next_wake = kNever;
  FindChoices(now, dropped);
  // A model that could start on several devices starts on the one with the fewest held cores.
  const Choice* chosen = nullptr;
  for (auto& [number, place] : places) {
    const Choice* const choice = ChooseAt(place, now);
    if (choice != nullptr && (chosen == nullptr || place.held < chosen->share->place->held)) chosen = choice;
  }
  return chosen == nullptr ? std::nullopt : std::optional(*chosen);
}

Scheduler::Batch Scheduler::Impl::Start(const Choice& choice, ModelQueue::Tasks tasks, int64_t now) {
  Model& model = *choice.model;
  Share& share = *choice.share;
  Place& place = *share.place;
  const int index = share.idle.back();
  share.idle.pop_back();
  --model.idle;
  int64_t size = 0;
  for (const auto& task : tasks) size += task->size();
  const double cost = choice.due.bucket->latency.Mean(size);
  Instance& instance = model.instances[index];
  instance = {instance.share, true, now, choice.due.bucket->id, size, cost};
  share.had += cost * model.threads() / model.weight();
  model.ends += static_cast<double>(now) + cost;
  place.held += model.threads();
  place.longest = std::max(place.longest * 0.99, cost);
  return {0, index, std::move(tasks), absl::Nanoseconds(static_cast<int64_t>(cost))};
}

Scheduler::Scheduler(const SchedulerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Scheduler::~Scheduler() = default;

Scheduler::ModelId Scheduler::AddModel(const BatcherOptions& options, const Places& places) {
  auto model = std::make_unique<Model>(options);
  // Reversed, because Start() takes idle instances from the back: instance 0 computes first.
  for (size_t i = places.size(); i-- > 0;) {
    Place* const place = &impl_->places[places[i]];
    auto share = std::find_if(model->shares.begin(), model->shares.end(),
                              [&](const Share& own) { return own.place == place; });
    if (share == model->shares.end())
      share = model->shares.insert(share, Share{.place = place, .had = place->served});
    ++share->instances;
    share->idle.push_back(static_cast<int>(i));
  }
  model->idle = places.size();
  model->instances.resize(places.size());
  for (size_t share = 0; share < model->shares.size(); ++share) {
    for (const int instance : model->shares[share].idle) model->instances[instance].share = share;
  }
  for (size_t i = 0; i < impl_->models.size(); ++i) {
    if (impl_->models[i] != nullptr) continue;
    impl_->models[i] = std::move(model);
    return static_cast<ModelId>(i);
  }
  impl_->models.push_back(std::move(model));
  return static_cast<ModelId>(impl_->models.size()) - 1;
}

std::vector<std::unique_ptr<BatchTask>> Scheduler::RemoveModel(ModelId model) {
  Model& removed = *impl_->models.at(model);
  // Release the cores of instances whose batch was handed out but never fetched.
  for (const Instance& instance : removed.instances) {
    if (instance.holds_cores) removed.shares[instance.share].place->held -= removed.threads();
  }
  std::vector<std::unique_ptr<BatchTask>> left = removed.queue.TakeAll();
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
  // Idle models do not accumulate credit: limit it to kCredit passes behind the device's current level.
  if (model.queue.empty()) {
    for (Share& share : model.shares) {
      const Place& place = *share.place;
      share.had = std::max(share.had, place.served - kCredit * place.longest / model.weight());
    }
  }
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
    // All its tasks were cancelled in the meantime.
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
    if (model != nullptr && model->idle == 0) model->queue.SweepAll(absl::ToUnixNanos(now), dropped);
  }
}

void Scheduler::Finished(ModelId id, int index, absl::Time now, bool learn) {
  Model& model = *impl_->models.at(id);
  Instance& instance = model.instances.at(index);
  const int64_t time = absl::ToUnixNanos(now);
  const auto took = static_cast<double>(time - instance.started);
  model.queue.Learn(instance.bucket, instance.size, learn ? std::optional(took) : std::nullopt, time);
  Share& share = model.shares[instance.share];
  share.had += (took - instance.charged) * model.threads() / model.weight();
  model.ends -= static_cast<double>(instance.started) + instance.charged;
  if (instance.holds_cores) share.place->held -= model.threads();
  instance.holds_cores = false;
  share.idle.push_back(index);
  if (++model.idle == model.instances.size()) model.ends = 0;
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

#include "server/batching/scheduler.h"

#include <algorithm>
#include <map>
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
  // Among its model's shares.
  size_t share = 0;
  bool holds_cores = false;
  int64_t started = 0;
  int64_t bucket = 0;
  int64_t size = 0;
  // What the pass was expected to take, and was charged for.
  double charged = 0;
};

struct Place;

// What a model has of a place.
struct Share {
  Place* place = nullptr;
  int instances = 0;
  std::vector<int> idle = {};
  // The place's time it has had, in nanoseconds of one core, over its weight.
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
  // Of each place where it has instances.
  std::vector<Share> shares;
  // Of all its instances.
  size_t idle = 0;
  bool closed = false;
  // When its instances are expected to be idle again, summed over those that compute.
  double ends = 0;
};

struct Choice {
  Model* model = nullptr;
  Share* share = nullptr;
  ModelQueue::Due due = {};

  double had() const { return share->had; }
};

struct Place {
  // Cores.
  double held = 0;
  // What the model furthest behind its share has had: who comes anew starts there.
  double served = 0;
  // The longest passes as of late, of one core.
  double longest = 0;
  // Whether several models want more of it, one pass each, than there is. Nobody waits for company there:
  // there is always somebody else to compute for.
  bool contended = false;
  // Who may have it now, while a batch is chosen.
  std::vector<Choice> choices = {};
};

absl::Status Closed() {
  return absl::UnavailableError(
      "the model takes no more requests: it is being unloaded or the server is shutting down; try another "
      "replica");
}

}  // namespace

struct Scheduler::Impl {
  explicit Impl(const SchedulerOptions& scheduler_options) : options(scheduler_options) {}

  // How many of the model's instances can compute at the same time, given what the others have to do.
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

  // How long the model's instances are taken by what they compute now.
  static double Ahead(const Model& model, int64_t now) {
    if (model.idle > 0) return 0;
    const auto busy = static_cast<double>(model.instances.size());
    // The first of them to end does so, on average, in this fraction of the mean.
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
        model->shares[instance.share].place->held -= model->threads();
      }
    }
  }

  void FindChoices(int64_t now, std::vector<Dropped>* dropped);
  const Choice* ChooseAt(Place& place, int64_t now);
  std::optional<Choice> Choose(int64_t now, std::vector<Dropped>* dropped);
  static Batch Start(const Choice& choice, ModelQueue::Tasks tasks, int64_t now);

  const SchedulerOptions options;
  // Null where one was removed.
  std::vector<std::unique_ptr<Model>> models;
  std::map<int, Place> places;
  int64_t next_wake = kNever;
};

// Of every place, those with something due and an idle instance there.
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

// Null if nobody may begin there.
const Choice* Scheduler::Impl::ChooseAt(Place& place, int64_t now) {
  const std::vector<Choice>& choices = place.choices;
  if (choices.empty()) return nullptr;
  const auto less_served = [](const Choice& a, const Choice& b) { return a.had() < b.had(); };
  const auto least = std::min_element(choices.begin(), choices.end(), less_served);
  place.served = std::max(place.served, least->had());
  const Choice* best = &*least;
  const double most = least->had() + kCredit * place.longest / least->model->weight();
  // Somebody whose deadline is at stake goes before it, within limits.
  for (const Choice& choice : choices) {
    const bool urgent = static_cast<double>(choice.due.latest_start - now) < place.longest;
    if (!urgent || choice.had() > most) continue;
    const bool best_urgent = static_cast<double>(best->due.latest_start - now) < place.longest;
    if (!best_urgent || choice.due.latest_start < best->due.latest_start) best = &choice;
  }
  if (HasCores(*best)) return best;
  FreeLongPasses(now);
  if (HasCores(*best)) return best;
  // It waits for cores. Smaller ones may use what there is, but not for ever.
  for (const Choice& choice : choices) {
    if (HasCores(choice) && choice.had() <= most) return &choice;
  }
  return nullptr;
}

std::optional<Choice> Scheduler::Impl::Choose(int64_t now, std::vector<Dropped>* dropped) {
  next_wake = kNever;
  FindChoices(now, dropped);
  // Who could go to several places goes where most is free.
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
  // The first to compute is instance 0.
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
  // Of those to whom a batch was handed out that nobody fetched.
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
  // Who had nothing to do for long has saved up no share, wherever it computes meanwhile.
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

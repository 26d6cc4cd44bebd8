#include "server/batching/scheduler_impl.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace saccade::server {
namespace {

// After this time a pass no longer reserves cores; others may start, and the operating system shares the
// cores.
constexpr Nanos kMaxHold = kSecond;
// Age at which the estimate of a model is renewed although nothing happened to the model, because its tasks
// may have become late.
constexpr Nanos kMaxEstimateAge = 5 * kMillisecond;

}  // namespace

void Scheduler::Impl::Track(Model& model) {
  TrackIndices(model);
  if (model.CanStart()) EstimateLater(model);
}

void Scheduler::Impl::TrackIndices(Model& model) {
  const bool active = !model.IsIdle();
  if (model.active != active) {
    model.active = active;
    for (const auto& on_device : model.devices) {
      Device& device = *on_device->device;
      device.active_models += model.active ? 1 : -1;
      device.active_weight += model.active ? model.weight() : -model.weight();
      // Avoids accumulated rounding errors.
      if (device.active_models == 0) device.active_weight = 0;
    }
  }
  for (const auto& on_device : model.devices) TrackOffer(*on_device);
  model.gauges.queued.store(model.queued(), std::memory_order_relaxed);
  model.gauges.set_aside.store(static_cast<int64_t>(model.aside), std::memory_order_relaxed);
  if (!model.CanStart()) ForgetEstimate(model);
}

void Scheduler::Impl::TrackOffer(ModelOnDevice& on_device) {
  const bool offers = !on_device.model->queue.empty() && !on_device.idle.empty();
  if (offers == (on_device.offer >= 0)) return;
  Device& device = *on_device.device;
  const double threads = on_device.model->threads();
  if (offers) {
    on_device.offer = static_cast<int>(device.offers.size());
    device.offers.push_back(
        {.on_device = &on_device, .used = on_device.used, .threads = threads, .model = on_device.model->id});
    device.wanted_cores += threads;
    MarkDue(on_device, on_device.model->due_estimate);
  } else {
    Offer& gone = device.offers[static_cast<size_t>(on_device.offer)];
    if (gone.due) --device.due;
    gone = device.offers.back();
    gone.on_device->offer = on_device.offer;
    device.offers.pop_back();
    on_device.offer = -1;
    device.wanted_cores -= threads;
  }
  Contend(device);
}

void Scheduler::Impl::MarkDue(ModelOnDevice& on_device, const DueEstimate& estimate) {
  if (on_device.offer < 0) return;
  Device& device = *on_device.device;
  Offer& offer = device.offers[static_cast<size_t>(on_device.offer)];
  if (offer.due != estimate.found) device.due += estimate.found ? 1 : -1;
  offer.due = estimate.found;
  offer.latest_start = estimate.due.latest_start;
}

void Scheduler::Impl::Contend(Device& device) {
  const bool contended = device.offers.size() > 1 && device.held + device.wanted_cores > options.cores;
  if (contended == device.contended) return;
  device.contended = contended;
  if (!contended) return;
  // Those that wait for more items need not wait any more.
  for (const Offer& offer : device.offers) {
    if (!offer.due) EstimateLater(*offer.on_device->model);
  }
}

void Scheduler::Impl::Use(ModelOnDevice& on_device, Nanos used) {
  on_device.used = used;
  if (on_device.offer >= 0) on_device.device->offers[static_cast<size_t>(on_device.offer)].used = used;
}

void Scheduler::Impl::EstimateLater(Model& model) {
  if (model.changed) return;
  model.changed = true;
  changed.push_back(&model);
}

void Scheduler::Impl::ForgetEstimate(Model& model) {
  if (model.due_estimate.due_at != NanoTime::Never()) waiting.erase({model.due_estimate.due_at, model.id});
  model.due_estimate = {};
  if (!model.age_place) return;
  by_estimate_age.erase(*model.age_place);
  model.age_place.reset();
}

void Scheduler::Impl::EstimateNow(Model& model, NanoTime now, std::vector<Dropped>* dropped) {
  // If this throws, the model is estimated again before the next choice.
  absl::Cleanup estimate_again = [&] { Track(model); };
  if (model.due_estimate.due_at != NanoTime::Never()) waiting.erase({model.due_estimate.due_at, model.id});
  // No batch waits for more items if the model is closed, or if every device with an idle instance has work
  // for other models.
  const bool at_once =
      model.closed || std::all_of(model.devices.begin(), model.devices.end(), [](const auto& on_device) {
        return on_device->idle.empty() || on_device->device->contended;
      });
  model.due_estimate = {.taken = now};
  DueEstimate& estimate = model.due_estimate;
  estimate.found =
      model.queue.FindDue(now, UsableInstances(model), at_once, &estimate.due, &estimate.due_at, dropped);
  if (estimate.found) estimate.due_at = NanoTime::Never();
  if (estimate.due_at != NanoTime::Never()) waiting.insert({estimate.due_at, model.id});
  if (model.age_place) {
    by_estimate_age.splice(by_estimate_age.end(), by_estimate_age, *model.age_place);
  } else {
    model.age_place = by_estimate_age.insert(by_estimate_age.end(), &model);
  }
  for (const auto& on_device : model.devices) MarkDue(*on_device, estimate);
  std::move(estimate_again).Cancel();
  // All its tasks may have been dropped.
  TrackIndices(model);
}

void Scheduler::Impl::RenewEstimates(NanoTime now, std::vector<Dropped>* dropped) {
  while (!waiting.empty() && waiting.begin()->first <= now)
    EstimateNow(*models[waiting.begin()->second], now, dropped);
  while (!by_estimate_age.empty() && now - by_estimate_age.front()->due_estimate.taken >= kMaxEstimateAge)
    EstimateNow(*by_estimate_age.front(), now, dropped);
  while (!changed.empty()) {
    Model& model = *changed.back();
    changed.pop_back();
    model.changed = false;
    if (model.CanStart()) EstimateNow(model, now, dropped);
  }
}

void Scheduler::Impl::Remove(Model& model) {
  TrackIndices(model);
  changed.erase(std::remove(changed.begin(), changed.end(), &model), changed.end());
  models[model.id] = nullptr;
}

double Scheduler::Impl::UsableInstances(const Model& model) const {
  const double fit = std::max(1.0, options.cores / model.threads());
  double instances = 0;
  for (const auto& on_device : model.devices) {
    const double weights = on_device->device->active_weight + (model.active ? 0 : model.weight());
    instances += std::min<double>(on_device->instances, fit * model.weight() / weights);
  }
  // Callers divide by the result, which a small weight would bring close to 0.
  return std::max(0.05, instances);
}

Nanos Scheduler::Impl::ExpectedWait(const Model& model, NanoTime now) {
  if (model.idle > 0) return {};
  const auto busy = static_cast<double>(std::max<size_t>(1, model.instances.size() - model.paused));
  // With n busy instances, the first one ends after 2 / (n + 1) of the mean remaining time, on average, if
  // the remaining times are spread evenly from 0 to twice their mean.
  return std::max(Nanos(), model.ends / busy - now.SinceEpoch()) * 2 / (busy + 1);
}

void Scheduler::Impl::CountDemand(Model& model) {
  const Nanos newest = model.queue.TakeDemand();
  model.gauges.demand.Add(newest);
  demand.Add(newest * std::min(1.0, model.threads() / options.cores) / static_cast<double>(devices.size()));
}

void Scheduler::Impl::List(Listed& listed, NanoTime at, Instance& instance) {
  instance.node.value() = {at, &instance};
  listed.insert(std::move(instance.node));
}

void Scheduler::Impl::Unlist(Listed& listed, NanoTime at, Instance& instance) {
  instance.node = listed.extract({at, &instance});
}

void Scheduler::Impl::ReleaseCores(Instance& instance) {
  if (!instance.holds_cores) return;
  instance.holds_cores = false;
  Device& device = *instance.on_device->device;
  device.held -= instance.on_device->model->threads();
  Unlist(holders, instance.started, instance);
  Contend(device);
}

void Scheduler::Impl::ReleaseCoresOfLongPasses(NanoTime now) {
  while (!holders.empty()) {
    const auto [started, instance] = *holders.begin();
    if (now - started < kMaxHold) {
      next_wake = std::min(next_wake, started + kMaxHold);
      return;
    }
    ReleaseCores(*instance);
  }
}

const Scheduler::Impl::Offer* Scheduler::Impl::ChooseAt(Device& device, NanoTime now) {
  if (device.due == 0) return nullptr;
  if (device.held >= options.cores) ReleaseCoresOfLongPasses(now);
  if (device.held >= options.cores) return nullptr;
  // No order of the models matters but what they used.
  const auto before = [](const Offer& a, const Offer& b) {
    return std::pair(a.used, a.model) < std::pair(b.used, b.model);
  };
  const Offer* min = nullptr;
  for (const Offer& offer : device.offers) {
    if (offer.due && (min == nullptr || before(offer, *min))) min = &offer;
  }
  if (min == nullptr) return nullptr;
  device.served = std::max(device.served, min->used);
  // A model with an urgent deadline goes first, as long as its use is at most `limit`.
  const Nanos limit = min->used + kMaxCreditPasses * device.longest / min->on_device->model->weight();
  const auto urgent = [&](const Offer& offer) { return offer.latest_start - now < device.longest; };
  const Offer* best = min;
  for (const Offer& offer : device.offers) {
    if (!offer.due || !urgent(offer) || offer.used > limit) continue;
    if (!urgent(*best) ||
        std::pair(offer.latest_start, offer.model) < std::pair(best->latest_start, best->model))
      best = &offer;
  }
  if (HasCores(device, best->threads)) return best;
  ReleaseCoresOfLongPasses(now);
  if (HasCores(device, best->threads)) return best;
  // `best` waits for cores. Meanwhile, models that fit may run as long as their use is at most `limit`.
  const Offer* fitting = nullptr;
  for (const Offer& offer : device.offers) {
    if (!offer.due || !HasCores(device, offer.threads) || offer.used > limit) continue;
    if (fitting == nullptr || before(offer, *fitting)) fitting = &offer;
  }
  return fitting;
}

Scheduler::Impl::ModelOnDevice* Scheduler::Impl::Choose(NanoTime now, std::vector<Dropped>* dropped) {
  for (;;) {
    RenewEstimates(now, dropped);
    next_wake = waiting.empty() ? NanoTime::Never() : waiting.begin()->first;
    if (!pauses.empty()) next_wake = std::min(next_wake, pauses.begin()->first);
    if (!retrying.empty() && !holders.empty())
      next_wake = std::min(next_wake, holders.begin()->first + kMaxHold);
    // A model that could start on several devices starts on the one with the fewest held cores.
    const Offer* chosen = nullptr;
    for (auto& [number, device] : devices) {
      const Offer* const offer = ChooseAt(device, now);
      if (offer != nullptr && (chosen == nullptr || device.held < chosen->on_device->device->held))
        chosen = offer;
    }
    if (chosen == nullptr) return nullptr;
    ModelOnDevice* const on_device = chosen->on_device;
    Model& model = *on_device->model;
    // Its tasks may have become late since the last estimate.
    if (model.due_estimate.taken != now) EstimateNow(model, now, dropped);
    if (model.due_estimate.found) return on_device;
  }
}

Scheduler::Batch Scheduler::Impl::Start(ModelOnDevice& on_device, std::vector<int>::iterator idle,
                                        int64_t bucket, Nanos cost, ModelQueue::Tasks tasks, NanoTime now) {
  Model& model = *on_device.model;
  Device& device = *on_device.device;
  const int index = *idle;
  // Also if this throws, because the tasks have left the queue.
  const absl::Cleanup track = [&] { Track(model); };
  int64_t size = 0;
  for (const auto& task : tasks) size += task->size();
  // First, because it may allocate: if that fails, the instance stays idle.
  model.queue.CountStarted(bucket, size, now);
  on_device.idle.erase(idle);
  --model.idle;
  Instance& instance = model.instances[index];
  instance.holds_cores = true;
  instance.started = now;
  instance.bucket = bucket;
  instance.size = size;
  instance.charged = cost;
  instance.retry_of = -1;
  Use(on_device, on_device.used + cost * model.threads() / model.weight());
  model.ends += now.SinceEpoch() + cost;
  device.held += model.threads();
  List(holders, now, instance);
  device.longest = std::max(device.longest * 0.99, cost);
  Contend(device);
  return {model.id, index, std::move(tasks), ToDuration(cost)};
}

}  // namespace saccade::server

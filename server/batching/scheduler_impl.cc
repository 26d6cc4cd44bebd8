#include "server/batching/scheduler_impl.h"

#include <algorithm>

namespace saccade::server {
namespace {

// After this time a pass no longer reserves cores; others may start, and the operating system shares the
// cores.
constexpr Nanos kMaxHold = kSecond;
}  // namespace

void Scheduler::Impl::Track(Model& model) {
  if (model.wants != model.Wants()) {
    model.wants = !model.wants;
    const auto at = std::lower_bound(wanting.begin(), wanting.end(), model.id,
                                     [](const Model* other, ModelId id) { return other->id < id; });
    if (model.wants) {
      wanting.insert(at, &model);
    } else {
      wanting.erase(at);
    }
  }
  const bool active = !model.Rests();
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
  const auto busy = static_cast<double>(model.instances.size());
  // With n busy instances, the first one ends after 2 / (n + 1) of the mean remaining time, on average, if
  // the remaining times are spread evenly from 0 to twice their mean.
  return std::max(Nanos(), model.ends / busy - now.SinceEpoch()) * 2 / (busy + 1);
}

void Scheduler::Impl::ReleaseCores(Instance& instance) {
  if (!instance.holds_cores) return;
  instance.holds_cores = false;
  instance.on_device->device->held -= instance.on_device->model->threads();
  holders.erase({instance.started, &instance});
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

void Scheduler::Impl::FindContended() {
  for (auto& [number, device] : devices) {
    device.contended = false;
    device.wanted_cores = device.held;
    device.wanting_models = 0;
  }
  for (const Model* model : wanting) {
    for (const auto& on_device : model->devices) {
      if (on_device->idle.empty()) continue;
      Device& device = *on_device->device;
      device.wanted_cores += model->threads();
      ++device.wanting_models;
      device.contended = device.wanting_models > 1 && device.wanted_cores > options.cores;
    }
  }
}

void Scheduler::Impl::FindCandidates(NanoTime now, std::vector<Dropped>* dropped) {
  FindContended();
  for (auto& [number, device] : devices) device.candidates.clear();
  for (size_t i = 0; i < wanting.size();) {
    Model& model = *wanting[i];
    // No batch waits for more items if the model is closed, or if every device with an idle instance has work
    // for other models.
    const bool at_once =
        model.closed || std::all_of(model.devices.begin(), model.devices.end(), [](const auto& on_device) {
          return on_device->idle.empty() || on_device->device->contended;
        });
    ModelQueue::Due due;
    const bool found = model.queue.FindDue(now, UsableInstances(model), at_once, &due, &next_wake, dropped);
    // Track() removes the model from `wanting` if all its tasks were dropped; wanting[i] is then the next.
    Track(model);
    if (model.wants) ++i;
    if (!found) continue;
    for (const auto& on_device : model.devices) {
      if (!on_device->idle.empty()) on_device->device->candidates.push_back({on_device.get(), due});
    }
  }
}

const Scheduler::Impl::Candidate* Scheduler::Impl::ChooseAt(Device& device, NanoTime now) {
  const std::vector<Candidate>& candidates = device.candidates;
  if (candidates.empty()) return nullptr;
  const auto less_used = [](const Candidate& a, const Candidate& b) { return a.used() < b.used(); };
  const auto min = std::min_element(candidates.begin(), candidates.end(), less_used);
  device.served = std::max(device.served, min->used());
  const Candidate* best = &*min;
  const Nanos limit = min->used() + kMaxCreditPasses * device.longest / min->model().weight();
  // A model with an urgent deadline goes first, as long as its use is at most `limit`.
  const auto urgent = [&](const Candidate& candidate) {
    return candidate.due.latest_start - now < device.longest;
  };
  for (const Candidate& candidate : candidates) {
    if (!urgent(candidate) || candidate.used() > limit) continue;
    if (!urgent(*best) || candidate.due.latest_start < best->due.latest_start) best = &candidate;
  }
  if (HasCores(*best)) return best;
  ReleaseCoresOfLongPasses(now);
  if (HasCores(*best)) return best;
  // `best` waits for cores. Meanwhile, models that fit may run as long as their use is at most `limit`.
  for (const Candidate& candidate : candidates) {
    if (HasCores(candidate) && candidate.used() <= limit) return &candidate;
  }
  return nullptr;
}

std::optional<Scheduler::Impl::Candidate> Scheduler::Impl::Choose(NanoTime now,
                                                                  std::vector<Dropped>* dropped) {
  next_wake = NanoTime::Never();
  FindCandidates(now, dropped);
  // A model that could start on several devices starts on the one with the fewest held cores.
  const Candidate* chosen = nullptr;
  for (auto& [number, device] : devices) {
    const Candidate* const candidate = ChooseAt(device, now);
    if (candidate != nullptr && (chosen == nullptr || device.held < chosen->on_device->device->held))
      chosen = candidate;
  }
  return chosen == nullptr ? std::nullopt : std::optional(*chosen);
}

Scheduler::Batch Scheduler::Impl::Start(const Candidate& candidate, ModelQueue::Tasks tasks, NanoTime now) {
  Model& model = candidate.model();
  ModelOnDevice& on_device = *candidate.on_device;
  Device& device = *on_device.device;
  const int index = on_device.idle.back();
  on_device.idle.pop_back();
  --model.idle;
  int64_t size = 0;
  for (const auto& task : tasks) size += task->size();
  const Nanos cost = candidate.due.bucket->latency.Mean(size);
  Instance& instance = model.instances[index];
  instance = {&on_device, true, now, candidate.due.bucket->id, size, cost};
  on_device.used += cost * model.threads() / model.weight();
  model.ends += now.SinceEpoch() + cost;
  device.held += model.threads();
  holders.insert({now, &instance});
  device.longest = std::max(device.longest * 0.99, cost);
  Track(model);
  return {model.id, index, std::move(tasks), ToDuration(cost)};
}

}  // namespace saccade::server

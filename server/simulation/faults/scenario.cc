#include "server/simulation/faults/scenario.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>

namespace saccade::server::simulation {
namespace {

template <typename T>
T OneOf(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.Below(static_cast<int64_t>(values.size()))];
}

// Log-uniform in [low, high].
double Between(Random& random, double low, double high) {
  return low * std::pow(high / low, random.Uniform());
}

ModelOptions DrawModel(Random& random) {
  ModelOptions model;
  model.instances = static_cast<int>(1 + random.Below(4));
  model.latency.alpha = FromMilliseconds(Between(random, 0.2, 8));
  model.latency.beta = FromMilliseconds(Between(random, 0.05, 2));
  model.shapes = EqualAreas(OneOf(random, {1, 1, 2, 3, 6}));
  return model;
}

QueuePolicy DrawPolicy(Random& random, const Features& features) {
  QueuePolicy policy;
  const int64_t bound = OneOf<int64_t>(random, {0, 0, 1, 8});
  const double timeout_ms = Between(random, 20, 200);
  const bool times_out = random.Chance(0.3);
  const bool delays = random.Chance(0.5);
  const bool may_override = random.Chance(0.5);
  if (features.has(Feature::kPriorities)) policy.max_queue_size = bound;
  if (!features.has(Feature::kTimeouts)) return policy;
  if (times_out) policy.timeout = absl::Milliseconds(timeout_ms);
  if (delays) policy.timeout_action = QueuePolicy::TimeoutAction::kDelay;
  policy.allow_timeout_override = may_override;
  return policy;
}

BatcherOptions DrawBatcher(Random& random, const Features& features) {
  BatcherOptions options;
  options.max_batch_size = OneOf<int64_t>(random, {1, 2, 4, 8, 16, 64});
  options.max_queue_size = options.max_batch_size + OneOf<int64_t>(random, {0, 0, 7, 200});
  const double delay_ms = Between(random, 0.1, 10);
  options.max_queue_delay = OneOf(random, {absl::ZeroDuration(), absl::Milliseconds(delay_ms),
                                           absl::InfiniteDuration(), absl::InfiniteDuration()});
  std::vector<int64_t> preferred;
  for (int64_t size = 1; size <= options.max_batch_size; size *= 2) {
    if (random.Chance(0.2)) preferred.push_back(size);
  }
  if (features.has(Feature::kPreferred)) options.preferred_batch_sizes = preferred;
  options.default_policy = DrawPolicy(random, features);
  const int levels = OneOf(random, {0, 0, 1, 3});
  const int default_level = levels == 0 ? 0 : static_cast<int>(1 + random.Below(levels));
  std::map<int, QueuePolicy> policies;
  for (int level = 1; level <= levels; ++level) {
    const QueuePolicy policy = DrawPolicy(random, features);
    if (random.Chance(0.5)) policies[level] = policy;
  }
  if (features.has(Feature::kPriorities)) {
    options.priority_levels = levels;
    options.default_priority_level = default_level;
    options.level_policies = policies;
  }
  options.weight = OneOf(random, {1.0, 1.0, 2.0, 5.0});
  options.threads = OneOf(random, {1, 1, 2});
  return options;
}

StreamOptions DrawStream(Random& random, const Features& features, const Scenario& scenario, int model) {
  const ModelOptions& device = scenario.models[model];
  const BatcherOptions& batcher = scenario.batchers[model];
  StreamOptions stream;
  stream.model = model;
  const Nanos full = device.latency(static_cast<double>(batcher.max_batch_size));
  const double capacity = device.instances * static_cast<double>(batcher.max_batch_size) * 1e9 / full.count();
  stream.rate = capacity * Between(random, 0.1, 4);
  const double cv = OneOf(random, {0.0, 1.0, 1.0, 2.0, 4.0, 8.0});
  stream.cv = features.has(Feature::kBursts) ? cv : 1;
  stream.buckets = random.Chance(0.5) ? ZipfWeights(static_cast<int>(device.shapes.size()))
                                      : std::vector<double>(device.shapes.size(), 1);
  stream.clients = 3;
  const bool several = random.Chance(0.4);
  if (several && features.has(Feature::kSizes)) stream.sizes = {4, 2, 1};
  const int levels = batcher.priority_levels;
  const auto priority = static_cast<int>(levels > 0 ? -random.Below(levels + 1) : random.Below(3) - 1);
  if (features.has(Feature::kPriorities)) stream.priority = priority;
  const Nanos alone = device.latency(1);
  const Nanos deadline = (alone * Between(random, 1.1, 30)).Whole();
  stream.deadline = OneOf(random, {deadline, deadline, deadline, deadline, kNever, kMicrosecond});
  const Nanos timeout = FromMilliseconds(Between(random, 20, 200));
  if (random.Chance(0.3) && features.has(Feature::kTimeouts)) stream.timeout = timeout;
  const double cancelled = OneOf(random, {0.0, 0.0, 0.1, 0.9});
  if (features.has(Feature::kCancellations)) stream.cancelled = cancelled;
  return stream;
}

// Makes some of the models so fast that handing their batches to another thread would take longer than a
// pass.
void DrawTinyPasses(Random& random, const Features& features, Scenario& scenario) {
  const bool fast = random.Chance(0.3);
  const double scale = Between(random, 0.02, 0.2);
  const bool lends = random.Chance(0.7);
  const bool has = features.has(Feature::kTinyPasses);
  scenario.lends.push_back(has && lends);
  if (!has || !fast) return;
  LinearLatency& latency = scenario.models.back().latency;
  latency.alpha = (latency.alpha * scale).Whole();
  latency.beta = (latency.beta * scale).Whole();
}

// Lets the scheduler predict what it would say to some of the requests, as the daemon does with pictures.
void DrawConsidered(Random& random, const Features& features, const Scenario& scenario,
                    StreamOptions& stream) {
  const ModelOptions& model = scenario.models[stream.model];
  const bool considered = random.Chance(0.5);
  const bool may_turn = random.Chance(0.3) && model.shapes.size() > 1;
  const Nanos preparation = (model.latency(1) * Between(random, 0.05, 2)).Whole();
  const bool is_prepared = random.Chance(0.5);
  if (!considered || !features.has(Feature::kConsidered)) return;
  stream.considered = true;
  stream.may_turn = may_turn;
  if (is_prepared) stream.preparation = preparation;
}

// Most scenarios have at most so many models. The others have 10, 50 or 200.
constexpr size_t kFewModels = 3;

void DrawOnDemand(Random& random, const Features& features, Nanos span, Scenario& scenario) {
  // All are loaded again within the ten seconds between the faults and the end of healing, one after the
  // other if need be. A load takes up to 1.5 times its mean. Loads of many models take less, so that many are
  // loaded among the faults, too.
  constexpr Nanos kMaxLoad = 1.5 * kSecond;
  const double share =
      std::min(1.0, static_cast<double>(kFewModels) / static_cast<double>(scenario.models.size()));
  OnDemand drawn;
  int64_t sum = 0;
  int64_t max = 0;
  for (size_t i = 0; i < scenario.models.size(); ++i) {
    drawn.bytes.push_back(1 + random.Below(100));
    const Nanos load = std::min(kMaxLoad, (span * Between(random, 0.005, 0.3)).Whole());
    drawn.load_time.push_back((share * load).Whole());
    sum += drawn.bytes.back();
    max = std::max(max, drawn.bytes.back());
  }
  // Sometimes too little for the largest. Of many models, only a part fits.
  if (scenario.models.size() > kFewModels) {
    drawn.max_bytes = OneOf<int64_t>(random, {0, sum / 2, sum / 4, sum / 10, max, max - 1});
  } else {
    drawn.max_bytes = OneOf<int64_t>(random, {0, sum, max, max, sum - 1, max - 1});
  }
  drawn.load_error = OneOf(random, {0.0, 0.0, 0.2});
  drawn.idle_unload = (span * Between(random, 0.02, 0.5)).Whole();
  drawn.max_waiting = OneOf<size_t>(random, {4, 256});
  const bool is_on_demand = random.Chance(0.25);
  if (!is_on_demand || !features.has(Feature::kOnDemand)) return;
  scenario.on_demand = drawn;
  scenario.reloads.clear();
}

void DrawParallelLoads(Random& random, const Features& features, Scenario& scenario) {
  if (!scenario.on_demand) return;
  enum class Kinds { kNone, kOne, kEachItsOwn };
  const auto kinds = OneOf(random, {Kinds::kNone, Kinds::kOne, Kinds::kEachItsOwn});
  const auto max_loads = OneOf<size_t>(random, {1, 2, 3});
  OnDemand& drawn = *scenario.on_demand;
  for (size_t i = 0; i < drawn.bytes.size(); ++i) drawn.kinds.push_back(OnDemand::kNoKind);
  if (!features.has(Feature::kParallelLoads)) return;
  drawn.max_loads = max_loads;
  for (size_t i = 0; kinds != Kinds::kNone && i < drawn.kinds.size(); ++i)
    drawn.kinds[i] = kinds == Kinds::kOne ? 0 : static_cast<int>(i);
}

DeviceFaults DrawFaults(Random& random, const Features& features, Nanos span) {
  DeviceFaults faults;
  faults.heals_at = span;
  const double error = OneOf(random, {0.0, 0.01, 0.2});
  const double slow = OneOf(random, {0.0, 0.01, 0.2});
  const double hang = OneOf(random, {0.0, 0.0, 0.005});
  faults.hang_length = (Between(random, 0.1, 5) * kSecond).Whole();
  const bool spell = random.Chance(0.2);
  faults.slow_from = (random.Uniform() * span).Whole();
  if (features.has(Feature::kErrors)) faults.error = error;
  if (features.has(Feature::kSlowPasses)) {
    faults.slow = slow;
    faults.slow_to = spell ? span : Nanos();
  }
  if (features.has(Feature::kHangs)) faults.hang = hang;
  return faults;
}

// Adds one steady stream per model with ample deadlines. Together they take a fifth of what a single instance
// can do.
void AddHealing(Scenario& scenario, Random& random, const Features& features) {
  Nanos longest;
  double min_rate = 1e12;
  const auto models = static_cast<double>(scenario.models.size());
  for (size_t i = 0; i < scenario.models.size(); ++i) {
    const LinearLatency& latency = scenario.models[i].latency;
    longest = std::max(
        longest, latency(static_cast<double>(std::min<int64_t>(8, scenario.batchers[i].max_batch_size))));
    min_rate = std::min(min_rate, 0.2 / models * 1e9 / latency(1).count());
  }
  scenario.healing_streams_from = scenario.streams.size();
  for (size_t i = 0; i < scenario.models.size(); ++i) {
    StreamOptions stream;
    stream.model = static_cast<int>(i);
    stream.from = scenario.healed_at;
    stream.rate = min_rate;
    stream.buckets.assign(scenario.models[i].shapes.size(), 1);
    stream.considered = random.Chance(0.5) && features.has(Feature::kConsidered);
    stream.deadline = 4 * scenario.models[i].latency(1) + 2 * longest;
    scenario.streams.push_back(stream);
  }
  scenario.drain_at = scenario.healed_at + FromSeconds(200 / min_rate);
}

}  // namespace

const char* NameOf(Feature feature) {
  constexpr const char* kNames[kFeatures] = {
      "errors",  "slow-passes",      "hangs",      "reloads",     "cancellations", "jitter",
      "sizes",   "bursts",           "priorities", "timeouts",    "preferred",     "shared-cores",
      "devices", "broken-instances", "considered", "tiny-passes", "on-demand",     "parallel-loads"};
  return kNames[static_cast<size_t>(feature)];
}

bool Scenario::AlwaysFits() const {
  std::map<int, int> max;
  for (size_t i = 0; i < models.size(); ++i) {
    for (int instance = 0; instance < models[i].instances; ++instance)
      max[models[i].DeviceOf(instance)] += batchers[i].threads;
  }
  return std::all_of(max.begin(), max.end(),
                     [&](const auto& device) { return device.second <= scheduler.cores; });
}

Scenario DrawScenario(uint64_t seed, const Features& features) {
  Random random(seed);
  // Draws what was added to the scenarios later, so that earlier seeds keep what they had.
  Random later(seed ^ 0x5eed);
  Random latest(seed ^ 0x10ad);
  Scenario scenario;
  const auto few_models = OneOf<int64_t>(random, {1, 1, 2, 3});
  const auto many_models = OneOf<int64_t>(random, {10, 50, 200});
  const int64_t models = random.Chance(0.02) ? many_models : few_models;
  int max_cores = 0;
  for (int64_t i = 0; i < models; ++i) {
    scenario.models.push_back(DrawModel(random));
    DrawTinyPasses(later, features, scenario);
    scenario.batchers.push_back(DrawBatcher(random, features));
    max_cores += scenario.models.back().instances * scenario.batchers.back().threads;
  }
  const auto few = static_cast<int>(1 + random.Below(4));
  const bool shared = random.Chance(0.4) && features.has(Feature::kSharedCores);
  scenario.scheduler.cores = shared ? few : max_cores;
  scenario.admission.max_inflight_requests = OneOf<int64_t>(random, {4, 64, 1024, 1024});
  const double jitter = OneOf(random, {0.0, 0.0, 0.1});
  if (features.has(Feature::kJitter)) scenario.jitter = jitter;

  double rate = 0;
  for (int64_t i = 0; i < models; ++i) {
    for (int64_t n = 1 + random.Below(2); n > 0; --n) {
      scenario.streams.push_back(DrawStream(random, features, scenario, static_cast<int>(i)));
      DrawConsidered(later, features, scenario, scenario.streams.back());
      rate += scenario.streams.back().rate;
    }
  }
  // Long enough for some thousands of requests.
  const Nanos span = (std::clamp(5000 / rate, 0.002, 10.0) * kSecond).Whole();
  for (StreamOptions& stream : scenario.streams) {
    stream.to = span;
    if (random.Chance(0.3) && features.has(Feature::kBursts)) {
      stream.step_factor = 5;
      stream.step_from = (span / 4).Whole();
      stream.step_to = (span / 2).Whole();
    }
    scenario.plain_order = scenario.plain_order && stream.sizes.size() == 1;
  }
  for (const BatcherOptions& batcher : scenario.batchers) {
    const auto delays = [](const QueuePolicy& policy) {
      return policy.timeout_action == QueuePolicy::TimeoutAction::kDelay;
    };
    scenario.plain_order = scenario.plain_order && !delays(batcher.default_policy);
    for (const auto& [level, policy] : batcher.level_policies) {
      scenario.plain_order = scenario.plain_order && !delays(policy);
    }
  }
  scenario.faults = DrawFaults(random, features, span);
  for (int64_t i = 0; i < models; ++i) {
    const Reload reload = {static_cast<int>(i), (random.Uniform() * span).Whole()};
    if (random.Chance(0.2) && features.has(Feature::kReloads)) scenario.reloads.push_back(reload);
  }
  DrawOnDemand(later, features, span, scenario);
  DrawParallelLoads(latest, features, scenario);
  // By then the longest pass of the faulty period has ended, and so have the requests that waited for it.
  scenario.healed_at = span + scenario.faults.hang_length + 10 * kSecond;
  AddHealing(scenario, later, features);
  const int64_t devices = OneOf<int64_t>(random, {1, 1, 2, 3});
  for (ModelOptions& model : scenario.models) {
    std::vector<int> drawn;
    for (int i = 0; i < model.instances; ++i) drawn.push_back(static_cast<int>(random.Below(devices)));
    if (features.has(Feature::kDevices)) model.devices = drawn;
  }
  for (size_t i = 0; i < scenario.models.size(); ++i) {
    BrokenInstance broken = {.model = static_cast<int>(i)};
    broken.instance = static_cast<int>(random.Below(scenario.models[i].instances));
    broken.from = (random.Uniform() * span).Whole();
    broken.to = random.Chance(0.5) ? span : (broken.from + random.Uniform() * (span - broken.from)).Whole();
    if (random.Chance(0.3) && features.has(Feature::kBrokenInstances))
      scenario.faults.broken.push_back(broken);
  }
  return scenario;
}

}  // namespace saccade::server::simulation

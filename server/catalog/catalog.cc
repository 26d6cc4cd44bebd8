#include "server/catalog/catalog.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/poll_schedule.h"
#include "server/core/retry_hint.h"
#include "server/logging/log.h"
#include "server/repository/repository.h"
#include "server/repository/stamps.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;

// Maximum number of pending loads and unloads. Each holds a name and at most a configuration.
constexpr size_t kMaxOrders = 64;
// How long an order to load a model often takes.
constexpr absl::Duration kRetryOrder = absl::Seconds(1);
// Time until the thread goes on after an exception, unless there is an order.
constexpr absl::Duration kPauseAfterError = absl::Seconds(1);
// How often the use of the cores by other processes is measured.
constexpr absl::Duration kContentionInterval = absl::Seconds(10);

absl::Status NotControlled() {
  return absl::FailedPreconditionError(
      "models cannot be loaded or unloaded by request; start the daemon with "
      "--model-control-mode=explicit");
}

}  // namespace

Catalog::Catalog(CatalogOptions options, Clock* clock, Metrics* metrics)
    : options_(std::move(options)),
      clock_(clock),
      load_queue_(std::make_unique<LoadQueue>(LoadQueueOptions{.max_loads = MaxLoads(options_.cores)}, clock,
                                              [orders = orders_] {
                                                absl::MutexLock lock(&orders->mutex);
                                                orders->wanted = true;
                                              })),
      host_(&options_, HostHooks(), &table_, clock, metrics),
      promotions_(options_.state_folder),
      metrics_(metrics),
      running_(MaxLoads(options_.cores)) {}

Catalog::~Catalog() { Close(); }

ModelHost::Hooks Catalog::HostHooks() {
  ModelHost::Hooks hooks;
  hooks.released = [orders = orders_] {
    absl::MutexLock lock(&orders->mutex);
    orders->released = true;
  };
  hooks.closed = [this] { return refusing(); };
  hooks.ended_ahead = [orders = orders_] {
    absl::MutexLock lock(&orders->mutex);
    orders->load_ended = true;
  };
  hooks.shadow_decided = [orders = orders_] { orders->just_decided = true; };
  if (options_.check_ensemble) {
    hooks.check_ensemble = [this](const Ensemble& ensemble) {
      return options_.check_ensemble(ensemble, *this);
    };
  }
  return hooks;
}

bool Catalog::refusing() const {
  absl::MutexLock lock(&orders_->mutex);
  return orders_->refusing;
}

absl::Status Catalog::Scan() {
  std::map<std::string, std::string> found_in;
  for (const std::string& repository : options_.repositories) {
    const auto names = ListModels(repository);
    if (!names.ok()) return names.status();
    if (names->empty()) {
      Log(LogLevel::kWarning, "the model repository holds no models",
          {{"repository", repository},
           {"expected", "a folder for each model, with config.pbtxt and the weights in its folder 1"}});
    }
    settling_[repository];
    for (const std::string& name : *names) {
      if (found_in.emplace(name, repository).second) {
        names_[repository].insert(name);
        continue;
      }
      return absl::AlreadyExistsError(absl::StrCat("model '", absl::CHexEscape(name),
                                                   "' is in more than one --model-repository; keep one of "
                                                   "them"));
    }
  }
  if (options_.control == ModelControl::kExplicit) {
    for (const std::string& name : options_.load_at_start) {
      if (name == "*" || found_in.count(name) > 0) continue;
      return absl::NotFoundError(absl::StrCat("--load-model names '", absl::CHexEscape(name),
                                              "', which is in no --model-repository"));
    }
  }
  for (const auto& [name, repository] : found_in) {
    const std::string shown = absl::CHexEscape(name);
    if (IsWanted(name)) {
      table_.Require(shown);
    } else {
      table_.SetModel(shown, State::kUnavailable, NotLoaded());
      if (options_.load_on_demand) table_.SetOnDemand(shown, true);
    }
  }
  return absl::OkStatus();
}

bool Catalog::IsWanted(const std::string& name) const {
  const auto& asked = options_.load_at_start;
  return options_.control != ModelControl::kExplicit ||
         std::any_of(asked.begin(), asked.end(),
                     [&](const std::string& one) { return one == "*" || one == name; });
}

void Catalog::Start(Events events) {
  events_ = std::move(events);
  thread_ = std::thread([this] { Run(); });
}

void Catalog::Load(const std::string& name, std::optional<std::string> config_json, Done done) {
  absl::Status refused = CheckModelName(name);
  if (refused.ok() && options_.control != ModelControl::kExplicit) refused = NotControlled();
  if (!refused.ok()) return std::move(done)(refused);
  Order(name, /*is_load=*/true,
        [this, name, config = std::move(config_json),
         done = std::move(done)](const absl::Status& cancelled) mutable {
          if (!cancelled.ok()) return std::move(done)(cancelled);
          Choose(
              {.name = name, .is_ordered = true, .config_json = std::move(config), .ended = std::move(done)});
        });
}

void Catalog::Unload(const std::string& name, bool with_dependents, Done done) {
  absl::Status refused = CheckModelName(name);
  if (refused.ok() && options_.control != ModelControl::kExplicit) refused = NotControlled();
  if (!refused.ok()) return std::move(done)(refused);
  Order(name, /*is_load=*/false,
        [this, name, with_dependents, done = std::move(done)](const absl::Status& cancelled) mutable {
          if (!cancelled.ok()) return std::move(done)(cancelled);
          DoUnload(name, with_dependents, std::move(done));
        });
}

void Catalog::Order(const std::string& model, bool is_load, Job job) {
  // The thread that runs the job logs under the call that ordered it.
  job = [call = CurrentLogCall(), job = std::move(job)](absl::Status cancelled) mutable {
    const LogCallScope scope(std::move(call));
    std::move(job)(std::move(cancelled));
  };
  absl::Status refused;
  {
    absl::MutexLock lock(&orders_->mutex);
    if (orders_->refusing) {
      refused = Closing();
    } else if (orders_->pending.size() >= kMaxOrders) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          kMaxOrders, " requests to load or unload models are already pending; try again later"));
      SetRetryAfter(refused, kRetryOrder);
    } else {
      orders_->pending.push_back({model, is_load, std::move(job)});
      orders_->changed = true;
      return;
    }
  }
  std::move(job)(refused);
}

absl::Status Catalog::Closing() { return absl::UnavailableError("the daemon is shutting down"); }

absl::Status Catalog::FailureWithoutText() { return {absl::StatusCode::kResourceExhausted, ""}; }

void Catalog::Run() {
  pthread_setname_np(pthread_self(), "catalog");
  absl::Status first_failure;
  if (!Guard([&] { first_failure = LoadAtStart(); })) first_failure = FailureWithoutText();
  if (events_.loaded && !refusing()) Guard([&] { events_.loaded(first_failure); });
  PollSchedule schedule(options_.poll_interval, options_.poll_jitter, std::random_device()());
  absl::Time next_look = schedule.After(clock_->Now());
  const bool looks = options_.control != ModelControl::kNone;
  for (;;) {
    absl::Time next_attempt = absl::InfiniteFuture();
    absl::Time next_idle = absl::InfiniteFuture();
    Try([&] {
      // A model that is unloaded now cannot be loaded any more, although requests are still accepted.
      if (!refusing()) next_idle = UnloadIdle();
      next_attempt = NextRetry();
    });
    absl::Time wake = std::min({looks ? next_look : absl::InfiniteFuture(), host_.NextDeadline(),
                                next_attempt, next_idle, next_ ? next_->give_up : absl::InfiniteFuture()});
    if (failed_) wake = clock_->Now() + kPauseAfterError;
    bool decided = false;
    bool contention_changed = false;
    bool closed = false;
    {
      absl::MutexLock lock(&orders_->mutex);
      Orders* const orders = orders_.get();
      const auto is_something = [orders] {
        orders->mutex.AssertHeld();
        return orders->changed || orders->load_ended || orders->closed || orders->released ||
               orders->wanted || orders->decided || orders->contention_changed;
      };
      orders_->wanted |= std::exchange(again_, false) && !failed_;
      clock_->AwaitUntil(&orders_->mutex, absl::Condition(&is_something), wake);
      closed = orders_->closed;
      orders_->changed = false;
      orders_->load_ended = false;
      orders_->released = false;
      orders_->wanted = false;
      decided = std::exchange(orders_->decided, false);
      contention_changed = std::exchange(orders_->contention_changed, false);
    }
    failed_ = false;
    if (refusing()) Try([&] { RejectNext(); });
    if (closed) return AwaitLoads();
    Try([&] { FreeUnused(); });
    // The next load waits no longer for memory.
    if (next_ && clock_->Now() >= next_->give_up) next_waits_ = false;
    EndLoads();
    RunUnloads();
    if (decided && !refusing()) Try([&] { ApplyDecisions(); });
    if (contention_changed) Try([&] { thread_trials_ = host_.ThreadTrials(); });
    Try([&] { StartLoads(); });
    if (looks && clock_->Now() >= next_look) {
      if (!refusing()) Try([&] { RescanAll(); });
      next_look = schedule.After(clock_->Now());
    }
    Try([&] { host_.ReportLate(clock_->Now()); });
  }
}

void Catalog::Try(absl::FunctionRef<void()> action) {
  if (!Guard(action)) failed_ = true;
}

std::optional<Catalog::Job> Catalog::TakeOrder(bool is_load) {
  absl::MutexLock lock(&orders_->mutex);
  std::vector<ModelOrder>& pending = orders_->pending;
  std::set<std::string> passed_over;
  for (auto order = pending.begin(); order != pending.end(); ++order) {
    const bool is_first = passed_over.insert(order->model).second;
    if (!is_first || order->is_load != is_load || IsLoading(order->model)) continue;
    std::optional<Job> job(std::move(order->job));
    pending.erase(order);
    return job;
  }
  return std::nullopt;
}

void Catalog::RunUnloads() {
  // At most so many, because others may be added meanwhile, which would delay all else.
  for (size_t i = 0; i < kMaxOrders; ++i) {
    std::optional<Job> job;
    Try([&] { job = TakeOrder(/*is_load=*/false); });
    if (!job) return;
    Try([&] { (*std::move(job))(refusing() ? Closing() : absl::OkStatus()); });
    // A job that has failed answers when it is destroyed.
    job.reset();
    // There may be room for the next load now.
    next_waits_ = false;
    Try([&] { ReportChanges(); });
  }
}

bool Catalog::Guard(absl::FunctionRef<void()> action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "the catalog failed at one of its tasks",
        {{"error", absl::string_view(error.what())}});
    return false;
  }
}

absl::Status Catalog::LoadAtStart() {
  absl::Status first;
  std::vector<Located> wanted;
  for (const auto& [repository, names] : names_) {
    for (const std::string& name : names)
      if (IsWanted(name)) wanted.emplace_back(name, repository);
  }
  std::sort(wanted.begin(), wanted.end());
  Guard([&] {
    std::set<std::string> names;
    for (const auto& [name, repository] : wanted) names.insert(name);
    load_queue_->ListAtStart(std::move(names));
  });
  std::deque<ReadFiles> ahead;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (refusing()) return first;
    const bool ended = Guard([&] { first.Update(LoadOne(wanted, i, ahead)); });
    load_queue_->EndAtStart(wanted[i].first);
    if (ended) continue;
    has_failed_at_start_ = true;
    // They may begin with files of model i, or of a later one.
    ahead.clear();
    // The failure must not be lost.
    first.Update(FailureWithoutText());
    Guard([&] {
      const absl::Status lost = absl::ResourceExhaustedError("a model could not be loaded; the log says why");
      host_.DropAhead(wanted[i].first);
      PlanRetry(wanted[i].second, wanted[i].first, lost);
      ReportChanges();
    });
  }
  return first;
}

absl::Status Catalog::LoadOne(const std::vector<Located>& wanted, size_t i, std::deque<ReadFiles>& ahead) {
  const auto& [name, repository] = wanted[i];
  // This one, and those read ahead, are loaded at the same time.
  const size_t parallel = MaxLoads(options_.cores);
  for (size_t next = i + ahead.size(); next < wanted.size() && ahead.size() < parallel; ++next)
    ahead.push_back(Read(wanted[next].second, wanted[next].first, std::nullopt));
  int64_t skipped_bytes = 0;
  for (const ReadFiles& files : ahead) {
    if (!files.entry.ok() || !files.stamp.ok()) continue;
    if (!host_.LoadAhead(*files.entry, *files.stamp, &skipped_bytes)) break;
  }
  ReadFiles files = std::move(ahead.front());
  ahead.pop_front();
  // Already loaded as part of an ensemble, perhaps from files that have changed since.
  if (host_.IsHosted(name)) {
    host_.DropAhead(name);
    return absl::OkStatus();
  }
  load_queue_->Begin(name, /*alone=*/host_.AheadOf(name).empty());
  absl::Status applied = Apply(repository, name, std::move(files), std::nullopt, {i + 1, wanted.size()}, 0);
  if (applied.ok()) {
    load_queue_->Loaded(name, host_.LoadTimeOf(name));
  } else {
    load_queue_->End(name);
    has_failed_at_start_ = true;
  }
  host_.DropAhead(name);
  PlanRetry(repository, name, applied);
  ReportChanges();
  return applied;
}

void Catalog::ReportChanges() {
  memory_in_use_ = host_.MemoryInUse();
  if (events_.model_changed) ReportModels();
  const bool all_ready = CheckAllReady().ok();
  if (events_.all_ready_changed && reported_all_ready_ != all_ready) events_.all_ready_changed();
  reported_all_ready_ = all_ready;
}

void Catalog::ReportModels() {
  std::map<std::string, bool> now;
  for (const IndexEntry& line : table_.Index()) now[line.name] |= line.state == State::kReady;
  for (const auto& [name, ready] : reported_) {
    if (ready && now.count(name) == 0) events_.model_changed(name, false);
  }
  for (const auto& [name, ready] : now) {
    const auto reported = reported_.find(name);
    if (reported == reported_.end() || reported->second != ready) events_.model_changed(name, ready);
  }
  reported_ = std::move(now);
}

void Catalog::RefreshGauges() {
  for (const ModelTable::Handle& model : table_.Served()) model->RefreshGauges();
  host_.CountDemand();
  const ModelTable::Counts counts = table_.CountModels();
  metrics_->SetModels(counts.served, counts.not_served, memory_in_use_,
                      static_cast<int64_t>(load_queue_->waiting()));
}

void Catalog::Sweep() {
  host_.Sweep();
  load_queue_->Sweep();
  WatchContention();
  if (!orders_->just_decided.exchange(false)) return;
  absl::MutexLock lock(&orders_->mutex);
  orders_->decided = true;
}

void Catalog::WatchContention() {
  if (!options_.core_use || refusing()) return;
  std::optional<double> by_others;
  {
    absl::MutexLock lock(&contention_mutex_);
    const absl::Time now = clock_->Now();
    if (now < next_contention_at_) return;
    next_contention_at_ = now + kContentionInterval;
    if (const auto use = options_.core_use()) by_others = contention_change_.Add(now, *use);
  }
  if (!by_others) return;
  Log(LogLevel::kInfo, "the load beside the daemon has changed for long; threads of passes are tried again",
      {{"share_of_cores", *by_others}});
  absl::MutexLock lock(&orders_->mutex);
  orders_->contention_changed = true;
}

void Catalog::RefuseLoads() {
  std::vector<ModelOrder> left;
  {
    absl::MutexLock lock(&orders_->mutex);
    orders_->refusing = true;
    orders_->changed = true;
    left.swap(orders_->pending);
  }
  const absl::Status why = Closing();
  for (ModelOrder& order : left) std::move(order.job)(why);
  load_queue_->Close(why);
}

void Catalog::Close() {
  RefuseLoads();
  {
    absl::MutexLock lock(&orders_->mutex);
    orders_->closed = true;
  }
  if (thread_.joinable()) thread_.join();
  host_.Close();
}

}  // namespace saccade::server

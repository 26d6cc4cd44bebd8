// Loads that requests cause, loads that are tried again, and unloads of what is not used.
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/core/fake_clock.h"
#include "server/core/retry_hint.h"
#include "server/repository/test_repository.h"

namespace {

// Allocations of this many bytes or more fail.
std::atomic<size_t> failing_size{SIZE_MAX};

}  // namespace

// ThreadSanitizer brings operators of its own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SACCADE_KEEPS_OPERATORS
#endif
#endif

#ifndef SACCADE_KEEPS_OPERATORS
// Replaces the operators for the whole program.
void* operator new(size_t size) {
  if (size >= failing_size) throw std::bad_alloc();
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }
#endif

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

constexpr char kIdentity[] =
    "max_batch_size: 2 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n";

constexpr char kEnsemble[] = R"pb(
  platform: "ensemble"
  input { name: "a" data_type: TYPE_FP32 dims: 1 }
  output { name: "b" data_type: TYPE_FP32 dims: 1 }
  ensemble_scheduling {
    step {
      model_name: "part"
      model_version: -1
      input_map { key: "x" value: "a" }
      output_map { key: "y" value: "b" }
    }
  })pb";

// A request that waits for its model.
struct Pending {
  absl::Notification ended;
  absl::Status status;

  const absl::Status& Await() {
    ended.WaitForNotification();
    return status;
  }
};

// While it is shut, loads on threads of their own stop at their first look at the clock.
class GateClock final : public Clock {
 public:
  explicit GateClock(Clock* clock) : clock_(clock) {}

  absl::Time Now() override {
    std::array<char, 16> thread = {};
    pthread_getname_np(pthread_self(), thread.data(), thread.size());
    if (std::string(thread.data()) == "load") Pass();
    return clock_->Now() + absl::Microseconds(ticks_ ? ++looks_ : looks_.load());
  }
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    return clock_->AwaitUntil(mu, condition, deadline);
  }
  void Shut() {
    absl::MutexLock lock(&mutex_);
    shut_ = true;
  }
  void Open() {
    absl::MutexLock lock(&mutex_);
    shut_ = false;
  }
  // From now on each look takes a microsecond. What took no time is not remembered for the next start.
  void Tick() { ticks_ = true; }
  // Whether so many loads stand at the gate at the same time, now or soon.
  bool AwaitLoads(int count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [this, count] {
      mutex_.AssertHeld();
      return standing_ == count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(60));
  }

 private:
  void Pass() {
    absl::MutexLock lock(&mutex_);
    const auto is_open = [this] {
      mutex_.AssertHeld();
      return !shut_;
    };
    ++standing_;
    mutex_.Await(absl::Condition(&is_open));
    --standing_;
  }

  Clock* const clock_;
  std::atomic<bool> ticks_{false};
  std::atomic<int64_t> looks_{0};
  absl::Mutex mutex_;
  bool shut_ ABSL_GUARDED_BY(mutex_) = false;
  int standing_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Other processes have all cores.
const auto kBusy = [] { return CoreUse{.beside = 1, .own = 0}; };

class DemandTest : public testing::Test {
 protected:
  // Loads that wait at the gate would not end.
  void TearDown() override {
    gate_.Open();
    failing_size = SIZE_MAX;
  }

  void Write(const std::string& model, const std::string& config = kIdentity) const {
    repository_.Write(absl::StrCat(model, "/config.pbtxt"), config);
    repository_.Write(absl::StrCat(model, "/1/weights.safetensors"), "");
  }

  absl::Status Start(CatalogOptions options, int cores = 2) {
    options.repositories = {repository_.string()};
    options.cores = cores;
    catalog_.emplace(std::move(options), &gate_, &metrics_);
    if (absl::Status scan = catalog_->Scan(); !scan.ok()) return scan;
    absl::Notification loaded;
    absl::Status first;
    catalog_->Start({.loaded = [&](const absl::Status& failure) {
      first = failure;
      loaded.Notify();
    }});
    loaded.WaitForNotification();
    return first;
  }
  absl::Status StartOnDemand(CatalogOptions options = {}) {
    options.control = ModelControl::kExplicit;
    options.load_on_demand = true;
    return Start(std::move(options));
  }

  // What a protocol does whose request finds the model not ready.
  absl::Status Ask(const std::string& model) {
    Pending request;
    CallHead call;
    call.model = model;
    ModelFinder::Resume resume = [&](absl::Status status) {
      request.status = std::move(status);
      request.ended.Notify();
    };
    if (!catalog_->AwaitModel(call, resume)) return catalog_->FindReady(model, 0).status();
    return request.Await();
  }
  static bool EndsSoon(const Pending& pending) {
    return pending.ended.WaitForNotificationWithTimeout(absl::Seconds(60));
  }
  // Like Ask(), without waiting.
  void Request(const std::string& model, Pending& request) {
    CallHead call;
    call.model = model;
    ModelFinder::Resume resume = EndOf(request);
    EXPECT_TRUE(catalog_->AwaitModel(call, resume)) << model;
  }
  static ModelFinder::Resume EndOf(Pending& pending) {
    return [&pending](absl::Status status) {
      pending.status = std::move(status);
      pending.ended.Notify();
    };
  }
  // Returns once the catalog has had the occasion to begin all loads that are wanted. Orders are answered
  // before loads begin, so the second answer follows all that the first one preceded.
  void AwaitTurn() {
    for (int i = 0; i < 2; ++i) {
      Pending unloaded;
      catalog_->Unload("nowhere", false, EndOf(unloaded));
      EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kNotFound);
    }
  }
  // Trials of threads that were made again, by what came of them; those that have no result yet do not count.
  int Trials() {
    const std::string text = metrics_.Exposition();
    int trials = 0;
    for (const char* result : {"kept", "changed", "failed"}) {
      const std::string line = absl::StrCat("saccade_thread_trials_total{result=\"", result, "\"} ");
      const size_t found = text.find(line);
      EXPECT_NE(found, std::string::npos) << line;
      if (found != std::string::npos) trials += std::stoi(text.substr(found + line.size()));
    }
    return trials;
  }
  // Ten minutes in which other processes have the cores, if the catalog was started with kBusy. The trials
  // are due once: their load is then no longer another one.
  void BeBusy() {
    for (int i = 0; i < 60; ++i) {
      clock_.Advance(absl::Seconds(10));
      catalog_->Sweep();
    }
  }
  bool Serves(const std::string& model) const { return catalog_->FindReady(model, 0).ok(); }
  IndexEntry Line(const std::string& model) const {
    for (const IndexEntry& line : catalog_->Index())
      if (line.name == model) return line;
    return {};
  }
  template <typename Condition>
  void Eventually(const Condition& condition, absl::Duration step = absl::ZeroDuration()) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "it did not happen";
      clock_.Advance(step);
      std::this_thread::yield();
    }
  }

  TestRepository repository_;
  FakeClock clock_;
  GateClock gate_{&clock_};
  Metrics metrics_{"test"};
  std::optional<Catalog> catalog_;
};

TEST_F(DemandTest, ARequestLoadsItsModel) {
  Write("a");
  Write("b");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  EXPECT_TRUE(Serves("a"));
  EXPECT_EQ(Line("b").state, State::kUnavailable);
  EXPECT_EQ(Line("b").reason, "not loaded; a request loads it");
  EXPECT_TRUE(catalog_->CheckAllReady().ok()) << "b need not be loaded";
  EXPECT_TRUE(Ask("b").ok());
  EXPECT_TRUE(Serves("b"));
}

TEST_F(DemandTest, WithoutTheFlagNoRequestLoads) {
  Write("a");
  ASSERT_TRUE(Start({.control = ModelControl::kExplicit}).ok());
  EXPECT_EQ(Ask("a").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Line("a").reason, "not loaded");
}

TEST_F(DemandTest, AModelThatDoesNotLoadAnswersItsRequests) {
  Write("bad", "nonsense");
  Write("good");
  ASSERT_TRUE(StartOnDemand().ok());
  const absl::Status failed = Ask("bad");
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfter(failed), absl::Seconds(1));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("bad/config.pbtxt:1:"));
  EXPECT_EQ(Ask("bad").code(), absl::StatusCode::kUnavailable) << "at once, without another attempt";
  EXPECT_TRUE(Ask("good").ok());
  Write("bad");
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Ask("bad").ok()) << "the file was corrected, and the pause is over";
}

TEST_F(DemandTest, AModelThatWasUnloadedByOrderStaysUnloaded) {
  Write("a");
  ASSERT_TRUE(StartOnDemand().ok());
  ASSERT_TRUE(Ask("a").ok());
  Pending unloaded;
  catalog_->Unload("a", false, [&](absl::Status status) {
    unloaded.status = std::move(status);
    unloaded.ended.Notify();
  });
  ASSERT_TRUE(unloaded.Await().ok());
  EXPECT_THAT(std::string(Ask("a").message()), HasSubstr("unavailable: unloaded"));
  Pending loaded;
  catalog_->Load("a", std::nullopt, [&](absl::Status status) {
    loaded.status = std::move(status);
    loaded.ended.Notify();
  });
  EXPECT_TRUE(loaded.Await().ok());
  EXPECT_TRUE(Serves("a"));
}

TEST_F(DemandTest, AnIdleModelIsUnloadedAndLoadedAgain) {
  Write("a");
  Write("kept");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"kept"}, .idle_unload = absl::Seconds(30)}).ok());
  ASSERT_TRUE(Ask("a").ok());
  Eventually([&] { return !Serves("a"); }, absl::Seconds(5));
  EXPECT_TRUE(Serves("kept")) << "it was named to be loaded at start";
  Eventually([&] { return Line("a").reason == "not loaded; a request loads it"; });
  EXPECT_TRUE(Ask("a").ok());
}

// An ensemble is checked while it is loaded, so its check decides how long that takes: ten seconds.
TEST_F(DemandTest, ARequestDuringALoadWaitsForTheRestOfIt) {
  Write("part");
  Write("e", kEnsemble);
  int loads = 0;
  Pending second;
  const auto check = [&](const Ensemble& /*ensemble*/, const Catalog& catalog) {
    clock_.Advance(absl::Seconds(9));
    if (++loads == 2) {
      CallHead call;
      call.model = "e";
      call.deadline = clock_.Now() + absl::Seconds(2);
      ModelFinder::Resume resume = [&](absl::Status status) {
        second.status = std::move(status);
        second.ended.Notify();
      };
      EXPECT_TRUE(catalog.AwaitModel(call, resume));
    }
    clock_.Advance(absl::Seconds(1));
    return absl::OkStatus();
  };
  ASSERT_TRUE(
      StartOnDemand({.load_at_start = {"part"}, .idle_unload = absl::Seconds(30), .check_ensemble = check})
          .ok());
  ASSERT_TRUE(Ask("e").ok());
  Eventually([&] { return Line("e").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
  EXPECT_TRUE(Ask("e").ok());
  EXPECT_EQ(loads, 2);
  EXPECT_TRUE(second.Await().ok()) << second.status;
}

// The weights only have a size: identity reads none. A load is expected to need twice as much, and this one
// is measured to need as much.
TEST_F(DemandTest, TheLeastRecentlyUsedModelsMakeRoom) {
  for (const char* model : {"a", "b", "c", "d", "e", "large"}) {
    Write(model);
    const int64_t size = model == std::string("large") ? 51 : 20;
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", size << 20);
  }
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"b"}, .max_model_bytes = 100 << 20}).ok());
  for (const char* model : {"a", "c", "d"}) {
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(Ask(model).ok());
  }
  EXPECT_TRUE(Serves("a"));
  ASSERT_TRUE(Ask("e").ok());
  EXPECT_FALSE(Serves("a")) << "it was used before c and d";
  for (const char* model : {"b", "c", "d", "e"}) EXPECT_TRUE(Serves(model)) << model;
  const absl::Status refused = Ask("large");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--model-memory-bytes is 104857600"));
  EXPECT_TRUE(Serves("c")) << "what does not fit anyway unloads nothing";
}

// There are two cores, and models of this kind are measured when `a` is loaded.
TEST_F(DemandTest, LoadsOfAMeasuredKindRunAtTheSameTime) {
  for (const char* model : {"a", "b", "c", "d"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending first;
  Pending second;
  Pending again;
  Pending third;
  Request("b", first);
  Request("c", second);
  EXPECT_TRUE(gate_.AwaitLoads(2));
  Request("b", again);
  Request("d", third);
  AwaitTurn();
  EXPECT_EQ(Line("b").state, State::kLoading);
  EXPECT_EQ(Line("c").state, State::kLoading);
  EXPECT_EQ(Line("d").state, State::kUnavailable) << "there is no third core";
  EXPECT_TRUE(gate_.AwaitLoads(2)) << "b is not loaded again";
  gate_.Open();
  for (Pending* request : {&first, &second, &again, &third})
    EXPECT_TRUE(request->Await().ok()) << request->status;
  for (const char* model : {"a", "b", "c", "d"}) EXPECT_TRUE(Serves(model)) << model;
}

TEST_F(DemandTest, OrdersRunBesideRequests) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending request;
  Pending order;
  Request("b", request);
  catalog_->Load("c", std::nullopt, EndOf(order));
  EXPECT_TRUE(gate_.AwaitLoads(2));
  gate_.Open();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_TRUE(order.Await().ok()) << order.status;
}

TEST_F(DemandTest, AModelThatIsMeasuredIsLoadedAlone) {
  for (const char* model : {"a", "b"}) Write(model);
  Write("odd",
        "max_batch_size: 3 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  Write("odd_too",
        "max_batch_size: 3 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending first;
  Pending odd;
  Pending too;
  Request("b", first);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  Request("odd", odd);
  Request("odd_too", too);
  AwaitTurn();
  EXPECT_EQ(Line("odd").state, State::kUnavailable) << "b's load would disturb its measurement";
  gate_.Open();
  for (Pending* request : {&first, &odd, &too}) EXPECT_TRUE(request->Await().ok()) << request->status;
}

// As above, a load is expected to need twice the size of the weights, and is measured to need as much.
TEST_F(DemandTest, LoadsThatRunCountWithTheMemoryThatTheyNeed) {
  for (const char* model : {"a", "b", "c"}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", 20 << 20);
  }
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .max_model_bytes = 99 << 20}).ok());
  gate_.Shut();
  Pending first;
  Pending second;
  Request("b", first);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  Request("c", second);
  AwaitTurn();
  EXPECT_EQ(Line("b").state, State::kLoading);
  EXPECT_EQ(Line("c").state, State::kUnavailable) << "20 MiB are held, and two loads need 40 each";
  gate_.Open();
  EXPECT_TRUE(first.Await().ok()) << first.status;
  EXPECT_TRUE(second.Await().ok()) << second.status;
  for (const char* model : {"a", "b", "c"}) EXPECT_TRUE(Serves(model)) << model;
}

// The loads of b and c need 40 MiB each, and each model holds 20.
TEST_F(DemandTest, AnUnloadMakesRoomForTheLoadThatWaits) {
  for (const char* model : {"a", "b", "c"}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", 20 << 20);
  }
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .max_model_bytes = 99 << 20}).ok());
  gate_.Shut();
  Pending first;
  Pending second;
  Pending unloaded;
  Request("b", first);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  Request("c", second);
  AwaitTurn();
  catalog_->Unload("a", false, EndOf(unloaded));
  EXPECT_TRUE(gate_.AwaitLoads(2));
  gate_.Open();
  for (Pending* pending : {&first, &second, &unloaded}) EXPECT_TRUE(pending->Await().ok()) << pending->status;
}

// One thread for each version would be more than there are cores.
TEST_F(DemandTest, VersionsOfAModelAreLoadedOneAfterTheOther) {
  Write("a");
  Write("many", absl::StrCat(kIdentity, "version_policy { all {} }"));
  for (int version : {2, 3}) repository_.Write(absl::StrCat("many/", version, "/weights.safetensors"), "");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending request;
  Request("many", request);
  EXPECT_TRUE(EndsSoon(request)) << "no thread but the catalog's own loads it";
  gate_.Open();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_EQ(catalog_->ServedVersions("many").size(), 3);
}

TEST_F(DemandTest, LoadsThatLoadNothingWaitForNoOther) {
  for (const char* model : {"a", "b"}) Write(model);
  Write("bad", "nonsense");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending slow;
  Pending again;
  Pending order;
  Pending request;
  Request("b", slow);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  catalog_->Load("a", std::nullopt, EndOf(again));
  catalog_->Load("bad", std::nullopt, EndOf(order));
  for (Pending* pending : {&again, &order}) EXPECT_TRUE(EndsSoon(*pending));
  Request("bad", request);
  EXPECT_TRUE(EndsSoon(request));
  EXPECT_FALSE(slow.ended.HasBeenNotified());
  gate_.Open();
  EXPECT_TRUE(again.Await().ok()) << again.status;
  EXPECT_EQ(order.Await().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(request.Await().message()), HasSubstr("bad/config.pbtxt:1:"));
  EXPECT_TRUE(slow.Await().ok()) << slow.status;
}

// A second model of 30 MiB would need 60 beside the first one.
TEST_F(DemandTest, AModelThatIsLoadedNeedsNoRoomForItself) {
  Write("a");
  std::filesystem::resize_file(repository_.path() / "a" / "1" / "weights.safetensors", 30 << 20);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .max_model_bytes = 80 << 20}).ok());
  Pending again;
  catalog_->Load("a", std::nullopt, EndOf(again));
  EXPECT_TRUE(again.Await().ok()) << again.status;
  EXPECT_EQ(Line("a").state, State::kReady);
}

// Reading a configuration takes more than a mebibyte, whatever its size.
TEST_F(DemandTest, ALoadThatCannotBeginStopsNoOther) {
#ifdef SACCADE_KEEPS_OPERATORS
  GTEST_SKIP() << "no allocation can be made to fail";
#endif
  for (const char* model : {"a", "b"}) Write(model);
  ASSERT_TRUE(StartOnDemand().ok());
  failing_size = 1 << 20;
  Pending order;
  catalog_->Load("a", std::nullopt, EndOf(order));
  ASSERT_TRUE(EndsSoon(order));
  EXPECT_EQ(order.status.code(), absl::StatusCode::kResourceExhausted);
  const absl::Status refused = Ask("b");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfter(refused), absl::Seconds(1));
  failing_size = SIZE_MAX;
  Pending again;
  catalog_->Load("a", std::nullopt, EndOf(again));
  EXPECT_TRUE(again.Await().ok()) << again.status;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Ask("b").ok());
}

TEST_F(DemandTest, OrdersThatFailAtOnceDelayNoUnload) {
  Write("a");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  std::atomic<bool> stops{false};
  Pending last;
  // Orders the next one as soon as one has failed.
  std::function<void(absl::Status)> next = [&](absl::Status status) {
    if (stops) return EndOf(last)(std::move(status));
    catalog_->Load("nowhere", std::nullopt, [&next](absl::Status failed) { next(std::move(failed)); });
  };
  next(absl::OkStatus());
  Pending unloaded;
  catalog_->Unload("a", false, EndOf(unloaded));
  EXPECT_TRUE(EndsSoon(unloaded));
  stops = true;
  EXPECT_EQ(last.Await().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
}

// As above, the ensemble's check takes ten seconds when it is loaded, but not when nothing is to be loaded.
TEST_F(DemandTest, OrdersToLoadWhatServesDoNotChangeWhatLoadsAreExpectedToTake) {
  Write("part");
  Write("e", kEnsemble);
  const auto check = [&](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    clock_.Advance(absl::Seconds(10));
    return absl::OkStatus();
  };
  gate_.Tick();
  ASSERT_TRUE(
      StartOnDemand({.load_at_start = {"part"}, .idle_unload = absl::Seconds(30), .check_ensemble = check})
          .ok());
  ASSERT_TRUE(Ask("e").ok());
  for (int i = 0; i < 3; ++i) {
    for (const char* model : {"e", "part"}) {
      Pending again;
      catalog_->Load(model, std::nullopt, EndOf(again));
      EXPECT_TRUE(again.Await().ok()) << again.status;
    }
  }
  Eventually([&] { return Line("e").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
  Pending late;
  CallHead call;
  call.model = "e";
  call.deadline = clock_.Now() + absl::Seconds(5);
  ModelFinder::Resume resume = EndOf(late);
  EXPECT_TRUE(catalog_->AwaitModel(call, resume));
  EXPECT_TRUE(late.ended.HasBeenNotified()) << "its load is expected to take ten seconds";
  EXPECT_EQ(late.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(DemandTest, AnUnloadWaitsForTheLoadOfItsModelAndForNoOther) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  ASSERT_TRUE(Ask("c").ok());
  gate_.Shut();
  Pending request;
  Pending unloaded;
  Pending other;
  Request("b", request);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  catalog_->Unload("b", false, EndOf(unloaded));
  catalog_->Unload("c", false, EndOf(other));
  EXPECT_TRUE(other.Await().ok()) << other.status;
  EXPECT_FALSE(unloaded.ended.HasBeenNotified());
  gate_.Open();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
  EXPECT_FALSE(Serves("b"));
  EXPECT_EQ(Line("b").reason, "unloaded");
}

TEST_F(DemandTest, AtTheEndLoadsThatRunServeNothing) {
  for (const char* model : {"a", "b", "c", "d"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending order;
  Pending request;
  Pending waits;
  catalog_->Load("b", std::nullopt, EndOf(order));
  Request("c", request);
  EXPECT_TRUE(gate_.AwaitLoads(2));
  catalog_->Load("d", std::nullopt, EndOf(waits));
  catalog_->RefuseLoads();
  for (Pending* refused : {&request, &waits}) {
    EXPECT_EQ(refused->Await().code(), absl::StatusCode::kUnavailable) << "at once";
    EXPECT_THAT(std::string(refused->status.message()), HasSubstr("shutting down"));
  }
  EXPECT_FALSE(order.ended.HasBeenNotified()) << "its load runs";
  gate_.Open();
  EXPECT_THAT(std::string(order.Await().message()), HasSubstr("shutting down"));
  for (const char* model : {"b", "c", "d"}) EXPECT_FALSE(Serves(model)) << model;
  EXPECT_TRUE(Serves("a"));
}

TEST_F(DemandTest, ThreadsAreTriedAgainOnceNoLoadRunsOrWaits) {
  for (const char* model : {"a", "b"}) Write(model);
  Write("odd",
        "max_batch_size: 3 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .core_use = kBusy}).ok());
  gate_.Shut();
  Pending first;
  Pending alone;
  int trials_before = -1;
  catalog_->Load("b", std::nullopt, EndOf(first));
  EXPECT_TRUE(gate_.AwaitLoads(1));
  BeBusy();
  AwaitTurn();
  EXPECT_EQ(Trials(), 0) << "b's load would disturb the measurements";
  catalog_->Load("odd", std::nullopt, [&](absl::Status status) {
    trials_before = Trials();
    EndOf(alone)(std::move(status));
  });
  AwaitTurn();
  gate_.Open();
  for (Pending* order : {&first, &alone}) EXPECT_TRUE(order->Await().ok()) << order->status;
  EXPECT_EQ(trials_before, 0) << "an order goes first";
  Eventually([&] { return Trials() > 0; });
  AwaitTurn();
  EXPECT_EQ(Trials(), 1) << "only a was loaded when the trials became due";
  for (const char* model : {"a", "b", "odd"}) EXPECT_TRUE(Serves(model)) << model;
}

TEST_F(DemandTest, ARequestDuringTrialsIsAnswered) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a", "b"}, .core_use = kBusy}).ok());
  BeBusy();
  EXPECT_TRUE(Ask("c").ok());
  Eventually([&] { return Trials() == 2; });
}

TEST_F(DemandTest, NoThreadsAreTriedWhileTheDaemonEnds) {
  for (const char* model : {"a", "b"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .core_use = kBusy}).ok());
  gate_.Shut();
  Pending order;
  catalog_->Load("b", std::nullopt, EndOf(order));
  EXPECT_TRUE(gate_.AwaitLoads(1));
  BeBusy();
  AwaitTurn();
  catalog_->RefuseLoads();
  gate_.Open();
  EXPECT_THAT(std::string(order.Await().message()), HasSubstr("shutting down"));
  // The thread ends the turn in which it has answered the order.
  catalog_.reset();
  EXPECT_EQ(Trials(), 0);
}

// The kinds are known from an earlier start. If c, which is small, were loaded ahead before there is room for
// b, there would be none for b in its turn.
TEST_F(DemandTest, AtTheStartNoModelTakesTheRoomOfOneThatComesFirst) {
  TestRepository state;
  for (const auto& [model, size] : {std::pair("a", 20), std::pair("b", 30), std::pair("c", 10)}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", size << 20);
  }
  CatalogOptions options;
  options.state_folder = state.string();
  options.measured_on = {"machine", "build"};
  gate_.Tick();
  ASSERT_TRUE(Start(options, /*cores=*/4).ok());
  catalog_.reset();
  options.max_model_bytes = 85 << 20;
  EXPECT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  for (const char* model : {"a", "b", "c"}) EXPECT_TRUE(Serves(model)) << model;
}

// zed is loaded ahead, with 40 MiB that it is expected to need, before it is known that the ensemble needs as
// much for its part. Each holds 20 afterwards.
TEST_F(DemandTest, AtTheStartAnEnsemblesPartsComeBeforeTheModelsBehindIt) {
  TestRepository state;
  Write("ens", kEnsemble);
  for (const char* model : {"part", "zed"}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", 20 << 20);
  }
  CatalogOptions options;
  options.control = ModelControl::kExplicit;
  options.load_at_start = {"ens", "zed"};
  options.state_folder = state.string();
  options.measured_on = {"machine", "build"};
  options.check_ensemble = [](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    return absl::OkStatus();
  };
  gate_.Tick();
  ASSERT_TRUE(Start(options, /*cores=*/4).ok());
  catalog_.reset();
  options.max_model_bytes = 65 << 20;
  EXPECT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  for (const char* model : {"ens", "part", "zed"}) EXPECT_TRUE(Serves(model)) << model;
}

// part's version 1 is loaded ahead. The check of the first ensemble then makes it version 2, which the second
// ensemble loads.
TEST_F(DemandTest, WhatWasLoadedAheadOfAPartThatHasChangedIsFreed) {
  TestRepository state;
  std::string first = kEnsemble;
  first.replace(first.find("\"part\""), 6, "\"b\"");
  Write("a", first);
  Write("b");
  Write("e", kEnsemble);
  Write("part");
  CatalogOptions options;
  options.control = ModelControl::kExplicit;
  options.load_at_start = {"*"};
  options.state_folder = state.string();
  options.measured_on = {"machine", "build"};
  options.check_ensemble = [](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    return absl::OkStatus();
  };
  gate_.Tick();
  ASSERT_TRUE(Start(options, /*cores=*/4).ok());
  catalog_.reset();
  options.check_ensemble = [&](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    const auto folder = repository_.path() / "part";
    if (std::filesystem::exists(folder / "1")) std::filesystem::rename(folder / "1", folder / "2");
    return absl::OkStatus();
  };
  ASSERT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  EXPECT_THAT(catalog_->ServedVersions("part"), testing::ElementsAre(2));
  Pending unloaded;
  catalog_->Unload("part", false, EndOf(unloaded));
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
  for (const IndexEntry& line : catalog_->Index()) EXPECT_NE(line.state, State::kUnloading) << line.version;
}

TEST_F(DemandTest, WaitingRequestsEndWithTheDaemon) {
  Write("a");
  ASSERT_TRUE(StartOnDemand().ok());
  catalog_->RefuseLoads();
  const absl::Status refused = Ask("a");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("shutting down"));
}

TEST_F(DemandTest, ALoadThatFailedAtStartIsTriedAgain) {
  Write("a", "nonsense");
  EXPECT_FALSE(Start({.control = ModelControl::kNone}).ok());
  Eventually([&] { return Line("a").reason.find("attempt 2 of 9 follows within 1s") != std::string::npos; });
  Write("a");
  Eventually([&] { return Serves("a"); }, absl::Seconds(1));
  EXPECT_EQ(Line("a").reason, "");
  EXPECT_TRUE(catalog_->CheckAllReady().ok());
}

TEST_F(DemandTest, AModelThatKeepsFailingIsGivenUp) {
  Write("a", "nonsense");
  EXPECT_FALSE(Start({.control = ModelControl::kNone}).ok());
  Eventually([&] { return Line("a").reason.find("given up after 9 attempts") != std::string::npos; },
             absl::Seconds(30));
  Write("a");
  for (int i = 0; i < 20; ++i) clock_.Advance(absl::Minutes(2));
  EXPECT_FALSE(Serves("a"));
}

TEST_F(DemandTest, ManyFoldersAreKnownWithoutBeingRead) {
  for (int i = 0; i < 5000; ++i) std::filesystem::create_directory(repository_.path() / absl::StrCat("m", i));
  Write("m4999");
  ASSERT_TRUE(StartOnDemand().ok());
  EXPECT_EQ(catalog_->Index().size(), 5000);
  EXPECT_TRUE(Ask("m4999").ok());
  EXPECT_EQ(Ask("m1").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace saccade::server

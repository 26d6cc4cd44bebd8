// A catalog of small models on virtual time, for tests of loads that orders and requests cause.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/identity_config.h"
#include "server/catalog/testing/pending.h"
#include "server/core/fake_clock.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {

inline constexpr char kEnsemble[] = R"pb(
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

class DemandTest : public ::testing::Test {
 protected:
  // Loads that wait at the gate would not end.
  void TearDown() override { gate_.Open(); }

  void Write(const std::string& model, const std::string& config = kIdentity) const {
    repository_.Write(absl::StrCat(model, "/config.pbtxt"), config);
    repository_.Write(absl::StrCat(model, "/1/weights.safetensors"), "");
  }

  absl::Status Start(CatalogOptions options, int cores = 2) {
    options.repositories = {repository_.string()};
    options.cores = cores;
    catalog_.emplace(std::move(options), &gate_, &metrics_);
    if (absl::Status scan = catalog_->Scan(); !scan.ok()) return scan;
    Pending loaded;
    catalog_->Start({.loaded = loaded.End()});
    return loaded.Await();
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
    ModelFinder::Resume resume = request.End();
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
    ModelFinder::Resume resume = request.End();
    EXPECT_TRUE(catalog_->AwaitModel(call, resume)) << model;
  }
  // Returns once the catalog has had the occasion to begin all loads that are wanted. Orders are answered
  // before loads begin, so the second answer follows all that the first one preceded.
  void AwaitTurn() {
    for (int i = 0; i < 2; ++i) {
      Pending unloaded;
      catalog_->Unload("nowhere", false, unloaded.End());
      EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kNotFound);
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

}  // namespace saccade::server

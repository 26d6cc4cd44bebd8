// A catalog of small models on virtual time, for tests of loads that orders and requests cause.
#pragma once

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
#include "server/catalog/testing/gate_clock.h"
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
  // Returns once the catalog has begun all loads that are wanted and may begin. Its thread waits with nothing
  // left to do then, and has done so since it answered an order that was given after all that preceded this
  // call.
  void AwaitTurn() {
    Pending unloaded;
    int64_t rests = 0;
    catalog_->Unload("nowhere", false, [&](absl::Status status) {
      // The catalog's thread, which calls this, is at work now.
      rests = gate_.rests();
      unloaded.End()(std::move(status));
    });
    EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kNotFound);
    EXPECT_TRUE(gate_.AwaitRest(rests));
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

// Loads that run beside each other, at the start too, and trials of threads, which run alone.
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/programs/testing/scripts.h"
#include "server/catalog/testing/demand_fixture.h"
#include "server/core/retry_hint.h"
#include "server/core/testing/failing_allocations.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

// Other processes have all cores.
const auto kBusy = [] { return CoreUse{.by_others = 1, .own = 0}; };

class ParallelLoadsTest : public DemandTest {
 protected:
  void TearDown() override {
    DemandTest::TearDown();
    testing::FailAllocationsFrom(SIZE_MAX);
  }

  // Starts and ends the catalog, which measures the kinds of all models, and has the next start remember
  // them. Adds to `options` what both need.
  void StartOnceBefore(CatalogOptions& options) {
    options.state_folder = state_.string();
    options.measured_on = {"machine", "build"};
    gate_.Tick();
    ASSERT_TRUE(Start(options, /*cores=*/4).ok());
    catalog_.reset();
  }
  void WriteProgram(const std::string& model, int adds) const {
    repository_.Write(absl::StrCat(model, "/config.pbtxt"),
                      "backend: \"pytorch\" max_batch_size: 2\n"
                      "input { name: \"x\" data_type: TYPE_FP32 dims: [ 2 ] }\n"
                      "output { name: \"y\" data_type: TYPE_FP32 dims: [ 2 ] }\n");
    std::filesystem::create_directories(repository_.path() / model / "1");
    models::testing::SaveScript(absl::StrCat("def forward(self, x):\n    return x + ", adds, "\n"),
                                (repository_.path() / model / "1" / "model.pt").string());
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

 private:
  TestRepository state_;
};

// There are two cores, and the copies are of the kind that is measured when `a` is loaded.
TEST_F(ParallelLoadsTest, CopiesOfAProgramAreLoadedAtTheSameTime) {
  WriteProgram("a", 1);
  for (const char* copy : {"b", "c"}) {
    std::filesystem::copy(repository_.path() / "a", repository_.path() / copy,
                          std::filesystem::copy_options::recursive);
  }
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .permissions = {.executable = true}}).ok());
  gate_.Shut();
  Pending first;
  Pending second;
  Request("b", first);
  Request("c", second);
  EXPECT_TRUE(gate_.AwaitLoads(2));
  gate_.Open();
  for (Pending* request : {&first, &second}) EXPECT_TRUE(request->Await().ok()) << request->status;
}

TEST_F(ParallelLoadsTest, AtTheSecondStartProgramsAreLoadedAtTheSameTime) {
  for (const auto& [model, adds] : {std::pair("a", 1), std::pair("b", 2), std::pair("c", 3)})
    WriteProgram(model, adds);
  CatalogOptions options;
  options.permissions.executable = true;
  StartOnceBefore(options);
  gate_.Shut();
  bool all_at_once = false;
  std::thread opens([&] {
    all_at_once = gate_.AwaitLoads(3);
    gate_.Open();
  });
  const absl::Status started = Start(options, /*cores=*/4);
  opens.join();
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_TRUE(all_at_once);
  for (const char* model : {"a", "b", "c"}) EXPECT_TRUE(Serves(model)) << model;
}

// There are two cores, and models of this kind are measured when `a` is loaded.
TEST_F(ParallelLoadsTest, LoadsOfAMeasuredKindRunAtTheSameTime) {
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

TEST_F(ParallelLoadsTest, OrdersRunBesideRequests) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending request;
  Pending order;
  Request("b", request);
  catalog_->Load("c", std::nullopt, order.End());
  EXPECT_TRUE(gate_.AwaitLoads(2));
  gate_.Open();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_TRUE(order.Await().ok()) << order.status;
}

TEST_F(ParallelLoadsTest, AModelThatIsMeasuredIsLoadedAlone) {
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
TEST_F(ParallelLoadsTest, LoadsThatRunCountWithTheMemoryThatTheyNeed) {
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
TEST_F(ParallelLoadsTest, AnUnloadMakesRoomForTheLoadThatWaits) {
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
  catalog_->Unload("a", false, unloaded.End());
  EXPECT_TRUE(gate_.AwaitLoads(2));
  gate_.Open();
  for (Pending* pending : {&first, &second, &unloaded}) EXPECT_TRUE(pending->Await().ok()) << pending->status;
}

// One thread for each version would be more than there are cores.
TEST_F(ParallelLoadsTest, VersionsOfAModelAreLoadedOneAfterTheOther) {
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

TEST_F(ParallelLoadsTest, LoadsThatLoadNothingWaitForNoOther) {
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
  catalog_->Load("a", std::nullopt, again.End());
  catalog_->Load("bad", std::nullopt, order.End());
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
TEST_F(ParallelLoadsTest, AModelThatIsLoadedNeedsNoRoomForItself) {
  Write("a");
  std::filesystem::resize_file(repository_.path() / "a" / "1" / "weights.safetensors", 30 << 20);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .max_model_bytes = 80 << 20}).ok());
  Pending again;
  catalog_->Load("a", std::nullopt, again.End());
  EXPECT_TRUE(again.Await().ok()) << again.status;
  EXPECT_EQ(Line("a").state, State::kReady);
}

// Reading a configuration takes more than a mebibyte, whatever its size.
TEST_F(ParallelLoadsTest, ALoadThatCannotBeginStopsNoOther) {
  for (const char* model : {"a", "b"}) Write(model);
  ASSERT_TRUE(StartOnDemand().ok());
  if (!testing::FailAllocationsFrom(1 << 20)) GTEST_SKIP() << "no allocation can be made to fail";
  Pending order;
  catalog_->Load("a", std::nullopt, order.End());
  ASSERT_TRUE(EndsSoon(order));
  EXPECT_EQ(order.status.code(), absl::StatusCode::kResourceExhausted);
  const absl::Status refused = Ask("b");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(RetryAfter(refused), absl::Seconds(1));
  testing::FailAllocationsFrom(SIZE_MAX);
  Pending again;
  catalog_->Load("a", std::nullopt, again.End());
  EXPECT_TRUE(again.Await().ok()) << again.status;
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Ask("b").ok());
}

TEST_F(ParallelLoadsTest, OrdersThatFailAtOnceDelayNoUnload) {
  Write("a");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  std::atomic<bool> stops{false};
  Pending last;
  // Orders the next one as soon as one has failed.
  std::function<void(absl::Status)> next = [&](absl::Status status) {
    if (stops) return last.End()(std::move(status));
    catalog_->Load("nowhere", std::nullopt, [&next](absl::Status failed) { next(std::move(failed)); });
  };
  next(absl::OkStatus());
  Pending unloaded;
  catalog_->Unload("a", false, unloaded.End());
  EXPECT_TRUE(EndsSoon(unloaded));
  stops = true;
  EXPECT_EQ(last.Await().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
}

// As above, the ensemble's check takes ten seconds when it is loaded, but not when nothing is to be loaded.
TEST_F(ParallelLoadsTest, OrdersToLoadWhatServesDoNotChangeWhatLoadsAreExpectedToTake) {
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
      catalog_->Load(model, std::nullopt, again.End());
      EXPECT_TRUE(again.Await().ok()) << again.status;
    }
  }
  Eventually([&] { return Line("e").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
  Pending late;
  CallHead call;
  call.model = "e";
  call.deadline = clock_.Now() + absl::Seconds(5);
  ModelFinder::Resume resume = late.End();
  EXPECT_TRUE(catalog_->AwaitModel(call, resume));
  EXPECT_TRUE(late.ended.HasBeenNotified()) << "its load is expected to take ten seconds";
  EXPECT_EQ(late.Await().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ParallelLoadsTest, AnUnloadWaitsForTheLoadOfItsModelAndForNoOther) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  ASSERT_TRUE(Ask("c").ok());
  gate_.Shut();
  Pending request;
  Pending unloaded;
  Pending other;
  Request("b", request);
  EXPECT_TRUE(gate_.AwaitLoads(1));
  catalog_->Unload("b", false, unloaded.End());
  catalog_->Unload("c", false, other.End());
  EXPECT_TRUE(other.Await().ok()) << other.status;
  EXPECT_FALSE(unloaded.ended.HasBeenNotified());
  gate_.Open();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
  EXPECT_FALSE(Serves("b"));
  EXPECT_EQ(Line("b").reason, "unloaded");
}

TEST_F(ParallelLoadsTest, AtTheEndLoadsThatRunServeNothing) {
  for (const char* model : {"a", "b", "c", "d"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  gate_.Shut();
  Pending order;
  Pending request;
  Pending waits;
  catalog_->Load("b", std::nullopt, order.End());
  Request("c", request);
  EXPECT_TRUE(gate_.AwaitLoads(2));
  catalog_->Load("d", std::nullopt, waits.End());
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

TEST_F(ParallelLoadsTest, ThreadsAreTriedAgainOnceNoLoadRunsOrWaits) {
  for (const char* model : {"a", "b"}) Write(model);
  Write("odd",
        "max_batch_size: 3 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .core_use = kBusy}).ok());
  gate_.Shut();
  Pending first;
  Pending alone;
  int trials_before = -1;
  catalog_->Load("b", std::nullopt, first.End());
  EXPECT_TRUE(gate_.AwaitLoads(1));
  BeBusy();
  AwaitTurn();
  EXPECT_EQ(Trials(), 0) << "b's load would disturb the measurements";
  catalog_->Load("odd", std::nullopt, [&](absl::Status status) {
    trials_before = Trials();
    alone.End()(std::move(status));
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

TEST_F(ParallelLoadsTest, ARequestDuringTrialsIsAnswered) {
  for (const char* model : {"a", "b", "c"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a", "b"}, .core_use = kBusy}).ok());
  BeBusy();
  EXPECT_TRUE(Ask("c").ok());
  Eventually([&] { return Trials() == 2; });
}

TEST_F(ParallelLoadsTest, NoThreadsAreTriedWhileTheDaemonEnds) {
  for (const char* model : {"a", "b"}) Write(model);
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}, .core_use = kBusy}).ok());
  gate_.Shut();
  Pending order;
  catalog_->Load("b", std::nullopt, order.End());
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
TEST_F(ParallelLoadsTest, AtTheStartNoModelTakesTheRoomOfOneThatComesFirst) {
  for (const auto& [model, size] : {std::pair("a", 20), std::pair("b", 30), std::pair("c", 10)}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", size << 20);
  }
  CatalogOptions options;
  StartOnceBefore(options);
  options.max_model_bytes = 85 << 20;
  EXPECT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  for (const char* model : {"a", "b", "c"}) EXPECT_TRUE(Serves(model)) << model;
}

// zed is loaded ahead, with 40 MiB that it is expected to need, before it is known that the ensemble needs as
// much for its part. Each holds 20 afterwards.
TEST_F(ParallelLoadsTest, AtTheStartAnEnsemblesPartsComeBeforeTheModelsBehindIt) {
  Write("ens", kEnsemble);
  for (const char* model : {"part", "zed"}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", 20 << 20);
  }
  CatalogOptions options;
  options.control = ModelControl::kExplicit;
  options.load_at_start = {"ens", "zed"};
  options.check_ensemble = [](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    return absl::OkStatus();
  };
  StartOnceBefore(options);
  options.max_model_bytes = 65 << 20;
  EXPECT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  for (const char* model : {"ens", "part", "zed"}) EXPECT_TRUE(Serves(model)) << model;
}

// part's version 1 is loaded ahead. The check of the first ensemble then makes it version 2, which the second
// ensemble loads.
TEST_F(ParallelLoadsTest, WhatWasLoadedAheadOfAPartThatHasChangedIsFreed) {
  std::string first = kEnsemble;
  first.replace(first.find("\"part\""), 6, "\"b\"");
  Write("a", first);
  Write("b");
  Write("e", kEnsemble);
  Write("part");
  CatalogOptions options;
  options.control = ModelControl::kExplicit;
  options.load_at_start = {"*"};
  options.check_ensemble = [](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    return absl::OkStatus();
  };
  StartOnceBefore(options);
  options.check_ensemble = [&](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    const auto folder = repository_.path() / "part";
    if (std::filesystem::exists(folder / "1")) std::filesystem::rename(folder / "1", folder / "2");
    return absl::OkStatus();
  };
  ASSERT_TRUE(Start(options, /*cores=*/4).ok()) << catalog_->CheckAllReady();
  EXPECT_THAT(catalog_->ServedVersions("part"), ::testing::ElementsAre(2));
  Pending unloaded;
  catalog_->Unload("part", false, unloaded.End());
  EXPECT_TRUE(unloaded.Await().ok()) << unloaded.status;
  for (const IndexEntry& line : catalog_->Index()) EXPECT_NE(line.state, State::kUnloading) << line.version;
}

}  // namespace
}  // namespace saccade::server

// Loads wait for the memory of models that were unloaded or replaced and that requests still use.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/demand_fixture.h"
#include "server/ensembles/ensemble_plan.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

// The models of these tests hold 20 MiB, a load of one is expected to need 40, and 45 are allowed.
class LeavingMemoryTest : public DemandTest {
 protected:
  static constexpr int64_t kMaxBytes = 45 << 20;
  // Room for a load beside one model, but not beside two.
  static constexpr int64_t kMaxBytesOfPoll = 65 << 20;
  // Room for a load beside two models, but not beside three.
  static constexpr int64_t kMaxBytesOfThree = 85 << 20;

  static constexpr absl::Duration kUnloadTimeout = absl::Seconds(10);

  void WriteWeights(const std::string& model, const std::string& config = kIdentity) const {
    Write(model, config);
    Resize(model, 1);
  }
  void Resize(const std::string& model, int version) const {
    std::filesystem::resize_file(repository_.path() / model / absl::StrCat(version) / "weights.safetensors",
                                 20 << 20);
  }
  // Loads "a" and has it used.
  std::shared_ptr<ServedModel> Use() {
    EXPECT_TRUE(
        StartOnDemand(
            {.max_model_bytes = kMaxBytes, .unload_timeout = kUnloadTimeout, .check_ensemble = check_})
            .ok());
    EXPECT_TRUE(Ask("a").ok());
    return Find("a");
  }
  std::shared_ptr<ServedModel> Find(const std::string& model) const {
    auto found = catalog_->FindReady(model, 0);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : nullptr;
  }
  // Returns once the catalog's thread waits, although the request is not answered.
  void RequestThatWaits(const std::string& model, Pending& request) {
    AwaitTurn();
    const int64_t rests = gate_.rests();
    Request(model, request);
    EXPECT_TRUE(gate_.AwaitRest(rests));
    EXPECT_FALSE(request.ended.HasBeenNotified()) << model;
  }

  // Starts a catalog that looks for changed files each second, with version 1 of "a".
  void StartPoll(int64_t max_bytes) {
    WriteWeights("a");
    ASSERT_TRUE(
        Start(
            {.control = ModelControl::kPoll, .poll_interval = absl::Seconds(1), .max_model_bytes = max_bytes})
            .ok());
    ASSERT_TRUE(gate_.AwaitRest(0));
  }
  void AddVersion(int version) const {
    repository_.Write(absl::StrCat("a/", version, "/weights.safetensors"), "");
    Resize("a", version);
  }
  // Has the catalog look at the files once, and apply what the look before has seen as well.
  void Look() {
    const int64_t rests = gate_.rests();
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(gate_.AwaitRest(rests));
  }
  int64_t Serving() const { return catalog_->FindReady("a", 0).value()->version(); }
  IndexEntry LineOf(int64_t version) const {
    for (const IndexEntry& line : catalog_->Index())
      if (line.name == "a" && line.version == version) return line;
    return {};
  }

  // Has "b" and "c" served while "a", which was unloaded, is used.
  std::shared_ptr<ServedModel> UseUnloaded(Pending& unloaded) {
    for (const char* model : {"a", "b", "c"}) WriteWeights(model);
    EXPECT_TRUE(
        StartOnDemand(
            {.max_model_bytes = kMaxBytesOfThree, .unload_timeout = kUnloadTimeout, .check_ensemble = check_})
            .ok());
    for (const char* model : {"a", "b", "c"}) EXPECT_TRUE(Ask(model).ok()) << model;
    std::shared_ptr<ServedModel> used = Find("a");
    catalog_->Unload("a", false, unloaded.End());
    AwaitTurn();
    return used;
  }

  EnsembleChecker check_ = [](const Ensemble& /*ensemble*/, const Catalog& /*catalog*/) {
    return absl::OkStatus();
  };
};

TEST_F(LeavingMemoryTest, AModelThatIsStillUsedHoldsItsMemory) {
  WriteWeights("a");
  WriteWeights("b");
  // This model is of another kind, so that it is loaded alone.
  WriteWeights(
      "alone",
      "max_batch_size: 30 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  std::shared_ptr<ServedModel> used = Use();
  for (const char* model : {"b", "alone"}) {
    Pending request;
    RequestThatWaits(model, request);
    EXPECT_EQ(Line(model).reason, "not loaded; a request loads it");
    used.reset();
    EXPECT_TRUE(request.Await().ok()) << request.status;
    used = Find(model);
  }
}

TEST_F(LeavingMemoryTest, AModelThatIsUsedForLongKeepsLoadsWaitingForThirtySeconds) {
  WriteWeights("a");
  WriteWeights("b");
  Write("small");
  const std::shared_ptr<ServedModel> used = Use();
  Pending large;
  Pending small;
  const absl::Time asked = clock_.Now();
  Request("b", large);
  Request("small", small);
  Eventually([&] { return large.ended.HasBeenNotified(); }, absl::Milliseconds(100));
  EXPECT_GE(clock_.Now() - asked, absl::Seconds(30));
  EXPECT_EQ(large.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(large.status.message()), HasSubstr("are still held by models"));
  EXPECT_TRUE(small.Await().ok()) << small.status;
}

// Else each request for another model would keep all loads waiting for thirty seconds more.
TEST_F(LeavingMemoryTest, AModelThatIsUsedForLongKeepsLoadsWaitingOnce) {
  for (const char* model : {"a", "b", "c"}) WriteWeights(model);
  const std::shared_ptr<ServedModel> used = Use();
  Pending first;
  RequestThatWaits("b", first);
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(first.Await().code(), absl::StatusCode::kUnavailable);
  const absl::Status second = Ask("c");
  EXPECT_THAT(std::string(second.message()), HasSubstr("are still held by models"));
}

TEST_F(LeavingMemoryTest, AnEnsemblesPartWaitsForMemory) {
  WriteWeights("a");
  WriteWeights("part");
  Write("e", kEnsemble);
  std::shared_ptr<ServedModel> used = Use();
  Pending request;
  RequestThatWaits("e", request);
  EXPECT_FALSE(Serves("a"));
  used.reset();
  EXPECT_TRUE(request.Await().ok()) << request.status;
  for (const char* model : {"part", "e"}) EXPECT_TRUE(Serves(model)) << model;
}

TEST_F(LeavingMemoryTest, AnEnsemblesPartWaitsForThirtySeconds) {
  WriteWeights("a");
  WriteWeights("part");
  Write("e", kEnsemble);
  std::shared_ptr<ServedModel> used = Use();
  Pending request;
  RequestThatWaits("e", request);
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(request.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(request.status.message()), HasSubstr("model 'part': needs about 41943040 bytes"));
  EXPECT_THAT(std::string(request.status.message()), HasSubstr("20971520 are still held by models"));
  used.reset();
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Ask("e").ok());
}

TEST_F(LeavingMemoryTest, AnUnloadIsAnsweredAtItsDeadlineWhileAPartWaits) {
  WriteWeights("a");
  WriteWeights("part");
  Write("e", kEnsemble);
  std::shared_ptr<ServedModel> used = Use();
  Pending unloaded;
  catalog_->Unload("a", false, unloaded.End());
  Pending request;
  RequestThatWaits("e", request);
  clock_.Advance(kUnloadTimeout);
  EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(request.ended.HasBeenNotified());
  used.reset();
  EXPECT_TRUE(request.Await().ok()) << request.status;
}

TEST_F(LeavingMemoryTest, APartWaitsNoLongerWhenTheDaemonEnds) {
  WriteWeights("a");
  WriteWeights("part");
  Write("e", kEnsemble);
  const std::shared_ptr<ServedModel> used = Use();
  Pending request;
  RequestThatWaits("e", request);
  catalog_.reset();
  EXPECT_THAT(std::string(request.Await().message()), HasSubstr("shutting down"));
}

TEST_F(LeavingMemoryTest, AModelThatIsUsedForTooLongHasAnotherUnloaded) {
  WriteWeights("d");
  Pending unloaded;
  const std::shared_ptr<ServedModel> used = UseUnloaded(unloaded);
  Pending request;
  RequestThatWaits("d", request);
  for (const char* model : {"b", "c"}) EXPECT_TRUE(Serves(model)) << model;
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_NE(Serves("b"), Serves("c"));
  EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LeavingMemoryTest, AModelThatIsUsedForTooLongHasAnotherUnloadedForAnEnsemblesPart) {
  WriteWeights("part");
  Write("e", kEnsemble);
  Pending unloaded;
  const std::shared_ptr<ServedModel> used = UseUnloaded(unloaded);
  Pending request;
  RequestThatWaits("e", request);
  for (const char* model : {"b", "c"}) EXPECT_TRUE(Serves(model)) << model;
  clock_.Advance(absl::Seconds(30));
  EXPECT_TRUE(request.Await().ok()) << request.status;
  EXPECT_NE(Serves("b"), Serves("c"));
  EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LeavingMemoryTest, AnEnsemblesPartMakesNoRoomForAnother) {
  WriteWeights("part");
  WriteWeights("second");
  std::string both = kEnsemble;
  const size_t at = both.find("output_map { key: \"y\" value: \"b\" }");
  both.replace(at, both.find('}', at) + 1 - at, R"pb(
    output_map { key: "y" value: "between" }
  }
        step {
    model_name: "second"
    model_version: -1
    input_map { key: "x" value: "between" }
    output_map { key: "y" value: "b" })pb");
  Write("e", both);
  ASSERT_TRUE(StartOnDemand({.max_model_bytes = kMaxBytes, .check_ensemble = check_}).ok());
  EXPECT_EQ(Ask("e").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Serves("part"));
  EXPECT_FALSE(Serves("second"));
}

// Each of these would fit if both other models were unloaded and "a" were not used.
TEST_F(LeavingMemoryTest, AModelThatIsUsedForTooLongHasNothingUnloadedInVain) {
  for (const char* model : {"large", "part"}) {
    Write(model);
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors", 40 << 20);
  }
  Write("e", kEnsemble);
  Pending unloaded;
  const std::shared_ptr<ServedModel> used = UseUnloaded(unloaded);
  clock_.Advance(absl::Seconds(30));
  for (const char* model : {"large", "e"}) {
    const absl::Status asked = Ask(model);
    EXPECT_EQ(asked.code(), absl::StatusCode::kUnavailable) << model;
    EXPECT_THAT(std::string(asked.message()), HasSubstr("20971520 are still held by models"));
    for (const char* other : {"b", "c"}) EXPECT_TRUE(Serves(other)) << model;
  }
  EXPECT_EQ(unloaded.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

// The ensemble e does not load, so that its part makes room for what else is to be loaded at the start.
class LeavingAtStartTest : public LeavingMemoryTest {
 protected:
  LeavingAtStartTest() {
    for (const char* model : {"part", "z"}) WriteWeights(model);
    Write("e", kEnsemble);
  }
  // Calls `meanwhile` when the catalog's thread waits for the first time, while the part is used.
  absl::Status StartAnd(const std::function<void()>& meanwhile, std::vector<std::string> models = {"e", "z"},
                        int64_t max_bytes = kMaxBytes) {
    std::thread watcher([&] {
      EXPECT_TRUE(gate_.AwaitRest(0));
      meanwhile();
    });
    const auto check = [this](const Ensemble& ensemble, const Catalog& catalog) -> absl::Status {
      if (ensemble.settings.name != "e") return absl::OkStatus();
      // Only the first time, since the test gives it back.
      if (!std::exchange(held_, true)) part_ = catalog.FindReady("part", 0).value();
      return absl::UnavailableError("it does not fit");
    };
    absl::Status started = StartOnDemand(
        {.load_at_start = std::move(models), .max_model_bytes = max_bytes, .check_ensemble = check});
    watcher.join();
    return started;
  }

  std::shared_ptr<ServedModel> part_;

 private:
  // The catalog's thread alone uses it.
  bool held_ = false;
};

TEST_F(LeavingAtStartTest, ALoadWaitsForMemory) {
  bool served_before = true;
  const absl::Status started = StartAnd([&] {
    served_before = Serves("z");
    part_.reset();
  });
  EXPECT_THAT(std::string(started.message()), HasSubstr("it does not fit"));
  EXPECT_FALSE(served_before);
  EXPECT_TRUE(Serves("z"));
}

TEST_F(LeavingAtStartTest, ALoadWaitsForThirtySecondsAndIsTriedAgain) {
  EXPECT_FALSE(StartAnd([&] { clock_.Advance(absl::Seconds(30)); }).ok());
  EXPECT_THAT(Line("z").reason, HasSubstr("are still held by models"));
  EXPECT_FALSE(Serves("z"));
  part_.reset();
  Eventually([&] { return Serves("z"); }, absl::Seconds(1));
}

TEST_F(LeavingAtStartTest, ALoadIsNotGivenUpWhileMemoryIsHeld) {
  EXPECT_FALSE(StartAnd([&] { clock_.Advance(absl::Seconds(30)); }).ok());
  ASSERT_TRUE(gate_.AwaitRest(1));
  for (int i = 0; i < 2 * Backoff::kMaxAttempts; ++i) {
    const int64_t rests = gate_.rests();
    clock_.Advance(absl::Minutes(2));
    ASSERT_TRUE(gate_.AwaitRest(rests));
  }
  EXPECT_THAT(Line("z").reason, HasSubstr("another attempt follows within 2m"));
  part_.reset();
  Eventually([&] { return Serves("z"); }, absl::Seconds(30));
}

// z is loaded ahead when it is not known yet that f needs memory for another model. With what z and the first
// part hold there is none.
TEST_F(LeavingAtStartTest, WhatIsLoadedAheadMakesRoomInTheEnd) {
  std::string other = kEnsemble;
  other.replace(other.find("\"part\""), 6, "\"other\"");
  Write("f", other);
  WriteWeights("other");
  const absl::Status started =
      StartAnd([&] { clock_.Advance(absl::Seconds(30)); }, {"e", "f", "z"}, 85 << 20);
  EXPECT_THAT(std::string(started.message()), HasSubstr("it does not fit"));
  for (const char* model : {"f", "other", "z"}) EXPECT_TRUE(Serves(model)) << model;
}

// The version that serves gives its memory back only when it has been replaced, so nothing waits for that.
TEST_F(LeavingMemoryTest, AVersionThatDoesNotFitBesideTheOneThatServesFailsAtOnce) {
  StartPoll(kMaxBytes);
  AddVersion(2);
  Look();
  Look();
  EXPECT_EQ(Serving(), 1);
  EXPECT_EQ(LineOf(2).state, State::kUnavailable);
  EXPECT_THAT(LineOf(2).reason, HasSubstr("needs about 41943040 bytes of memory beside 20971520"));
  EXPECT_THAT(LineOf(2).reason, HasSubstr("--model-memory-bytes is 47185920"));
}

TEST_F(LeavingMemoryTest, AVersionWaitsForTheMemoryOfTheOneBeforeTheLast) {
  StartPoll(kMaxBytesOfPoll);
  std::shared_ptr<ServedModel> used = Find("a");
  AddVersion(2);
  Look();
  Look();
  EXPECT_EQ(Serving(), 2) << "both have room";
  AddVersion(3);
  Look();
  Look();
  EXPECT_EQ(Serving(), 2) << "version 1 holds its memory";
  used.reset();
  Eventually([&] { return Serving() == 3; });
}

TEST_F(LeavingMemoryTest, AVersionWaitsForThirtySecondsAndIsTriedAgain) {
  StartPoll(kMaxBytesOfPoll);
  std::shared_ptr<ServedModel> used = Find("a");
  AddVersion(2);
  Look();
  Look();
  AddVersion(3);
  Look();
  Look();
  const int64_t rests = gate_.rests();
  clock_.Advance(absl::Seconds(30));
  ASSERT_TRUE(gate_.AwaitRest(rests));
  EXPECT_EQ(Serving(), 2);
  EXPECT_EQ(LineOf(3).state, State::kUnavailable);
  EXPECT_THAT(LineOf(3).reason, HasSubstr("20971520 are still held by models"));
  used.reset();
  Eventually([&] { return Serving() == 3; }, absl::Seconds(1));
}

TEST_F(LeavingMemoryTest, AVersionThatAnOrderDoesNotLoadIsListedWithTheReason) {
  WriteWeights("a");
  ASSERT_TRUE(StartOnDemand({.max_model_bytes = kMaxBytesOfPoll}).ok());
  ASSERT_TRUE(Ask("a").ok());
  const std::shared_ptr<ServedModel> used = Find("a");
  AddVersion(2);
  Pending second;
  catalog_->Load("a", std::nullopt, second.End());
  ASSERT_TRUE(second.Await().ok()) << second.status;
  AddVersion(3);
  Pending third;
  catalog_->Load("a", std::nullopt, third.End());
  AwaitTurn();
  EXPECT_FALSE(third.ended.HasBeenNotified());
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(third.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Serving(), 2);
  EXPECT_EQ(LineOf(3).state, State::kUnavailable);
  EXPECT_THAT(LineOf(3).reason, HasSubstr("20971520 are still held by models"));
}

}  // namespace
}  // namespace saccade::server

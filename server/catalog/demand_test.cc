// Loads that requests cause, loads that are tried again, and unloads of what is not used.
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/demand_fixture.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

constexpr char kOrderedConfig[] =
    R"({"max_batch_size": 5, "parameters": {"architecture": {"string_value": "identity"}}})";

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

TEST_F(DemandTest, AVersionThatIsNotKnownBeforeTheLoadIsWaitedFor) {
  Write("a");
  Write("b");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  EXPECT_EQ(catalog_->FindReady("b", 7).status().code(), absl::StatusCode::kUnavailable);
  const auto label = catalog_->VersionOf("b", "stable");
  EXPECT_EQ(label.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(label.status().message()), HasSubstr("a request without a label loads it"));
  ASSERT_TRUE(Ask("b").ok());
  const auto missing = catalog_->FindReady("b", 7);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("it serves version 1"));
}

TEST_F(DemandTest, LoadsAtStartTellHowLongOthersWillTake) {
  Write("a");
  Write("b");
  gate_.Tick();
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"a"}}).ok());
  Pending request;
  CallHead call;
  call.model = "b";
  call.deadline = clock_.Now();
  ModelFinder::Resume resume = request.End();
  ASSERT_TRUE(catalog_->AwaitModel(call, resume));
  EXPECT_EQ(request.Await().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(request.status.message()), HasSubstr("expected to take"));
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

TEST_F(DemandTest, AVersionThatServesAnswersAlthoughAnotherFails) {
  Write("a", absl::StrCat(kIdentity, "version_policy { all { } }\n"));
  repository_.Write("a/2/weights.txt", "");
  ASSERT_TRUE(StartOnDemand().ok());
  for (int i = 0; i < 3; ++i) {
    const absl::Status answered = Ask("a");
    EXPECT_TRUE(answered.ok()) << answered;
  }
  CallHead second;
  second.model = "a";
  second.version = 2;
  ModelFinder::Resume resume = [](const absl::Status&) {};
  EXPECT_FALSE(catalog_->AwaitModel(second, resume)) << "another load would fail, too";
  EXPECT_EQ(catalog_->FindReady("a", 2).status().code(), absl::StatusCode::kUnavailable);
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

TEST_F(DemandTest, AConfigurationThatCameWithAnOrderHoldsWhileItsModelIsIdle) {
  Write("a");
  ASSERT_TRUE(StartOnDemand({.idle_unload = absl::Seconds(30)}).ok());
  const auto unloads = [&] {
    Eventually([&] { return Line("a").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
  };
  const auto size = [&] { return (*catalog_->FindReady("a", 0))->max_batch_size(); };
  Pending loaded;
  catalog_->Load("a", kOrderedConfig, loaded.End());
  ASSERT_TRUE(loaded.Await().ok()) << loaded.status;
  for (int i = 0; i < 2; ++i) {
    unloads();
    ASSERT_TRUE(Ask("a").ok());
    EXPECT_EQ(size(), 5) << i;
  }
  Pending failed;
  catalog_->Load("a", "{}", failed.End());
  EXPECT_FALSE(failed.Await().ok());
  unloads();
  ASSERT_TRUE(Ask("a").ok());
  EXPECT_EQ(size(), 5) << "an order that fails changes nothing";
  unloads();
  Write("a",
        "max_batch_size: 30 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  ASSERT_TRUE(Ask("a").ok());
  EXPECT_EQ(size(), 30) << "the file has changed since";
}

// Models with several versions are loaded alone, so this one waits for the load of another model.
TEST_F(DemandTest, AFileThatChangesWhileItsModelWaitsReplacesAnOrdersConfiguration) {
  for (const char* model : {"a", "b", "kept"}) Write(model);
  repository_.Write("a/2/weights.safetensors", "");
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"kept"}, .idle_unload = absl::Seconds(30)}).ok());
  Pending ordered;
  catalog_->Load("a",
                 R"({"max_batch_size": 5, "version_policy": {"all": {}},
                     "parameters": {"architecture": {"string_value": "identity"}}})",
                 ordered.End());
  ASSERT_TRUE(ordered.Await().ok()) << ordered.status;
  Eventually([&] { return Line("a").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
  gate_.Shut();
  Pending before;
  Pending request;
  Request("b", before);
  ASSERT_TRUE(gate_.AwaitLoads(1));
  Request("a", request);
  AwaitTurn();
  Write("a",
        "max_batch_size: 30 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n");
  gate_.Open();
  EXPECT_TRUE(before.Await().ok()) << before.status;
  ASSERT_TRUE(request.Await().ok()) << request.status;
  EXPECT_EQ((*catalog_->FindReady("a", 0))->max_batch_size(), 30);
}

TEST_F(DemandTest, AnEnsemblesPartHasTheConfigurationOfItsOrder) {
  Write("part");
  Write("e", kEnsemble);
  ASSERT_TRUE(
      StartOnDemand({.idle_unload = absl::Seconds(30),
                     .check_ensemble = [](const Ensemble&, const Catalog&) { return absl::OkStatus(); }})
          .ok());
  Pending loaded;
  catalog_->Load("part", kOrderedConfig, loaded.End());
  ASSERT_TRUE(loaded.Await().ok()) << loaded.status;
  Eventually([&] { return !Serves("part"); }, absl::Seconds(5));
  ASSERT_TRUE(Ask("e").ok());
  EXPECT_EQ((*catalog_->FindReady("part", 0))->max_batch_size(), 5);
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

// Each ensemble takes two seconds to load.
TEST_F(DemandTest, ARequestDuringTheStartWaitsForTheRestOfIt) {
  for (const char* model : {"cold", "part"}) Write(model);
  for (const char* model : {"e1", "e2", "e3"}) Write(model, kEnsemble);
  int loads = 0;
  absl::Status late;
  const auto check = [&](const Ensemble& /*ensemble*/, const Catalog& catalog) {
    if (++loads == 2) {
      CallHead call;
      call.model = "cold";
      call.deadline = clock_.Now() + absl::Seconds(5);
      ModelFinder::Resume resume = [&](absl::Status status) { late = std::move(status); };
      EXPECT_TRUE(catalog.AwaitModel(call, resume));
    }
    clock_.Advance(absl::Seconds(2));
    return absl::OkStatus();
  };
  ASSERT_TRUE(StartOnDemand({.load_at_start = {"part", "e1", "e2", "e3"}, .check_ensemble = check}).ok());
  EXPECT_EQ(loads, 3);
  EXPECT_EQ(late.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(late.message()), HasSubstr("expected to take"));
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

TEST_F(DemandTest, AModelThatARequestHoldsIsNotIdle) {
  Write("a");
  ASSERT_TRUE(StartOnDemand({.idle_unload = absl::Seconds(30)}).ok());
  ASSERT_TRUE(Ask("a").ok());
  auto used = catalog_->FindReady("a", 0);
  ASSERT_TRUE(used.ok()) << used.status();
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Seconds(20));
    AwaitTurn();
  }
  EXPECT_TRUE(Serves("a"));
  used->reset();
  Eventually([&] { return Line("a").reason == "not loaded; a request loads it"; }, absl::Seconds(5));
}

TEST_F(DemandTest, AModelWhoseUseIsNotedIsNotIdle) {
  Write("a");
  ASSERT_TRUE(StartOnDemand({.idle_unload = absl::Seconds(30)}).ok());
  ASSERT_TRUE(Ask("a").ok());
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Seconds(20));
    const auto used = catalog_->FindReady("a", 0);
    ASSERT_TRUE(used.ok()) << used.status();
    (*used)->NoteUse();
    EXPECT_EQ((*used)->last_used(), clock_.Now());
  }
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

TEST_F(DemandTest, AConfigurationThatCameWithAnOrderIsNotReplacedByARetry) {
  Write("a", "nonsense");
  EXPECT_FALSE(Start({.control = ModelControl::kExplicit, .load_at_start = {"a"}}).ok());
  Eventually([&] { return Line("a").reason.find("attempt 2 of 9 follows") != std::string::npos; });
  Pending loaded;
  catalog_->Load("a", kOrderedConfig, loaded.End());
  ASSERT_TRUE(loaded.Await().ok()) << loaded.status;
  Write("a");
  for (int i = 0; i < 20; ++i) {
    clock_.Advance(absl::Seconds(30));
    AwaitTurn();
  }
  ASSERT_TRUE(Serves("a"));
  EXPECT_EQ((*catalog_->FindReady("a", 0))->max_batch_size(), 5);
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

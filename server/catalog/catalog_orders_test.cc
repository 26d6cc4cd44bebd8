// Loads and unloads that clients order.
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/catalog_fixture.h"
#include "server/catalog/testing/pending.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

using State = ModelSnapshot::State;
using CatalogOrdersTest = CatalogTest;

TEST_F(CatalogOrdersTest, OnRequestWhatIsNamedIsLoaded) {
  Write("m", 1);
  Write("n", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(Line("n", 0).reason, "not loaded");
  EXPECT_TRUE(catalog_->CheckAllReady().ok()) << "n was not asked for";
  ASSERT_TRUE(Load("n").ok());
  EXPECT_EQ(Served("n"), 1);
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_EQ(catalog_->FindReady("m", 0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Line("m", 1).reason, "unloaded");
  EXPECT_TRUE(catalog_->CheckAllReady().ok()) << "it was unloaded on request";
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(Served("m"), 1);
}

// Answers that list the models are kept until it does.
TEST(ModelTableTest, TheGenerationGrowsWithEveryChange) {
  ModelTable table;
  uint64_t before = table.generation();
  const auto grown = [&] {
    const uint64_t now = table.generation();
    return std::exchange(before, now) < now;
  };
  table.SetModel("m", State::kLoading, "");
  EXPECT_TRUE(grown());
  table.SetRetry("m", "; retried in 4 s");
  EXPECT_TRUE(grown());
  ModelSnapshot version;
  version.name = "m";
  version.version = 1;
  table.SetVersion(version);
  EXPECT_TRUE(grown());
  table.SetLoadStep("m", 1, {});
  EXPECT_FALSE(grown()) << "the list does not tell it";
  table.Serve("m", 1, nullptr);
  EXPECT_TRUE(grown());
  table.Withdraw("m", 1, State::kUnavailable, "unloaded");
  EXPECT_TRUE(grown());
  table.EraseVersion("m", 1);
  EXPECT_TRUE(grown());
  table.WithdrawModel("m", "unloaded");
  EXPECT_TRUE(grown());
  table.EraseModel("m");
  EXPECT_TRUE(grown());
  EXPECT_TRUE(table.List().empty());
  EXPECT_FALSE(grown());
}

TEST_F(CatalogOrdersTest, AListThatIsReadAfterAnOrderIsOfALaterGeneration) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit).ok());
  uint64_t before = catalog_->generation();
  ASSERT_TRUE(Load("m").ok());
  EXPECT_GT(catalog_->generation(), before);
  before = catalog_->generation();
  ASSERT_TRUE(Unload("m").ok());
  EXPECT_GT(catalog_->generation(), before);
}

TEST_F(CatalogOrdersTest, OrdersAreChecked) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit).ok());
  EXPECT_EQ(Load("../m").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Unload("m/1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("nowhere").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Unload("nowhere").code(), absl::StatusCode::kNotFound);
}

TEST_F(CatalogOrdersTest, AnOrderThatThrowsEndsNeitherTheThreadNorOtherOrders) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit).ok());
  for (int i = 0; i < 2; ++i) {
    auto kept = std::make_shared<int>();
    const std::weak_ptr<int> watched = kept;
    catalog_->Load("nowhere", std::nullopt,
                   [kept = std::move(kept)](const absl::Status&) { throw std::bad_alloc(); });
    EXPECT_TRUE(Load("m").ok());
    EXPECT_TRUE(watched.expired()) << "what it keeps may answer the client";
  }
}

TEST_F(CatalogOrdersTest, OneOrderTooManyIsToldWhenToTryAgain) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit).ok());
  absl::Notification begun;
  absl::Notification go;
  catalog_->Load("nowhere", std::nullopt, [&](const absl::Status&) {
    begun.Notify();
    go.WaitForNotification();
  });
  begun.WaitForNotification();
  std::vector<Pending> taken(64);
  for (Pending& order : taken) catalog_->Load("m", std::nullopt, order.End());
  Pending refused;
  catalog_->Load("m", std::nullopt, refused.End());
  EXPECT_EQ(refused.Await().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfter(refused.status)) << "REST would say that the request is too large";
  go.Notify();
  for (Pending& order : taken) EXPECT_TRUE(order.Await().ok()) << order.status;
}

TEST_F(CatalogOrdersTest, OrdersNeedTheModeForThem) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kNone).ok());
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Unload("m").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Served("m"), 1);
}

TEST_F(CatalogOrdersTest, WhoIsToldThatALoadEndedFindsItsReadiness) {
  Write("m", 1);
  // Written and read on the catalog's thread only.
  std::map<std::string, bool> ready;
  Catalog catalog({.repositories = {repository_.string()}, .control = ModelControl::kExplicit, .cores = 2},
                  &clock_, &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Pending started;
  catalog.Start({.model_changed = [&](const std::string& model, bool now) { ready[model] = now; },
                 .loaded = started.End()});
  ASSERT_TRUE(started.Await().ok());
  bool was_ready = false;
  Pending loaded;
  catalog.Load("m", std::nullopt, [&](const absl::Status& status) {
    was_ready = ready["m"];
    loaded.End()(status);
  });
  ASSERT_TRUE(loaded.Await().ok());
  EXPECT_TRUE(was_ready);
  bool is_ready = true;
  Pending unloaded;
  catalog.Unload("m", false, [&](const absl::Status& status) {
    is_ready = ready["m"];
    unloaded.End()(status);
  });
  ASSERT_TRUE(unloaded.Await().ok());
  EXPECT_FALSE(is_ready);
}

TEST_F(CatalogOrdersTest, ReadinessIsToldWhenARequiredModelThatNeverServedIsUnloaded) {
  Write("good", 1);
  repository_.Write("bad/config.pbtxt", "platform: 7");
  Catalog catalog({.repositories = {repository_.string()},
                   .control = ModelControl::kExplicit,
                   .load_at_start = {"good", "bad"},
                   .cores = 2},
                  &clock_, &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Pending started;
  std::atomic<int> told{0};
  std::atomic<bool> ready{false};
  catalog.Start({.all_ready_changed =
                     [&] {
                       ready = catalog.CheckAllReady().ok();
                       ++told;
                     },
                 .loaded = started.End()});
  EXPECT_FALSE(started.Await().ok());
  EXPECT_FALSE(ready);
  const int told_at_start = told;
  Pending unloaded;
  bool was_told = false;
  catalog.Unload("bad", false, [&](const absl::Status& status) {
    was_told = told > told_at_start && ready;
    unloaded.End()(status);
  });
  ASSERT_TRUE(unloaded.Await().ok());
  EXPECT_TRUE(was_told);
  for (const IndexEntry& line : catalog.Index())
    EXPECT_EQ(line.reason, line.name == "bad" ? "unloaded" : "") << line.name;
}

TEST_F(CatalogOrdersTest, ASecondUnloadWaitsForTheSameRequests) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Pending first;
  catalog_->Unload("m", false, first.End());
  Eventually([&] { return first.ended.HasBeenNotified(); });
  EXPECT_EQ(first.Await().code(), absl::StatusCode::kDeadlineExceeded);
  Pending second;
  catalog_->Unload("m", false, second.End());
  // Orders of a model are carried out one after another, so this one has been seen.
  EXPECT_EQ(Unload("nowhere").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(second.ended.HasBeenNotified());
  EXPECT_EQ(Line("m", 1).state, State::kUnloading);
  user.reset();
  EXPECT_TRUE(second.Await().ok()) << second.status;
  EXPECT_EQ(Line("m", 1).state, State::kUnavailable);
}

TEST_F(CatalogOrdersTest, ALabelMovesOnceItsVersionServes) {
  const auto labels = [](absl::string_view text) {
    return absl::StrCat(
        "version_policy { all { } } parameters { key: \"version_labels\" value { string_value: \"", text,
        "\" } }");
  };
  Write("m", 1, labels("stable=1"));
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(*catalog_->VersionOf("m", "stable"), 1);
  // Version 2 has no weights; version 3 has.
  std::filesystem::create_directory(repository_.path() / "m" / "2");
  Write("m", 1, labels("stable=2"));
  EXPECT_FALSE(Load("m").ok());
  EXPECT_EQ(*catalog_->VersionOf("m", "stable"), 1) << "it serves, and version 2 does not";
  Write("m", 3, labels("stable=3,next=2"));
  EXPECT_FALSE(Load("m").ok());
  EXPECT_EQ(*catalog_->VersionOf("m", "stable"), 3) << "whether or not another version is broken";
  EXPECT_EQ(*catalog_->VersionOf("m", "next"), 2);
}

TEST_F(CatalogOrdersTest, ARequestsConfigurationHoldsUntilTheNextLoad) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  const auto size = [&] { return (*catalog_->FindReady("m", 0))->max_batch_size(); };
  const auto before = (*catalog_->FindReady("m", 0)).get();
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ((*catalog_->FindReady("m", 0)).get(), before) << "nothing has changed";
  ASSERT_TRUE(
      Load("m", R"({"max_batch_size": 5, "parameters": {"architecture": {"string_value": "identity"}}})")
          .ok());
  EXPECT_EQ(size(), 5);
  EXPECT_EQ(Load("m", "{}").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(size(), 5) << "what fails to load changes nothing";
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(size(), 2);
}

TEST_F(CatalogOrdersTest, UnloadingWaitsForWhoUsesTheModel) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Pending told;
  catalog_->Unload("m", false, told.End());
  Soon([&] { return catalog_->FindReady("m", 0).status().code() == absl::StatusCode::kUnavailable; });
  EXPECT_TRUE(user->CheckReady().ok()) << "who has found it may use it";
  user.reset();
  EXPECT_TRUE(told.Await().ok()) << told.status;
}

TEST_F(CatalogOrdersTest, UnloadingWaitsNoLongerThanItsTimeout) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Pending told;
  catalog_->Unload("m", false, told.End());
  Eventually([&] { return told.ended.HasBeenNotified(); });
  EXPECT_EQ(told.Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Line("m", 1).state, State::kUnloading);
  user.reset();
  Eventually([&] { return Line("m", 1).state == State::kUnavailable; });
}

TEST_F(CatalogOrdersTest, AnUnloadThatStillWaitsAtTheEndIsAnswered) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  const auto user = *catalog_->FindReady("m", 0);
  Pending told;
  catalog_->Unload("m", false, told.End());
  Soon([&] { return Line("m", 1).state == State::kUnloading; });
  catalog_->Close();
  ASSERT_TRUE(told.ended.HasBeenNotified());
  EXPECT_EQ(told.status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(CatalogOrdersTest, BeforeTheEndLoadsAreRefusedAndUnloadsAreCompleted) {
  Write("m", 1);
  Write("n", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m", "n"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Pending told;
  catalog_->Unload("m", false, told.End());
  Soon([&] { return Line("m", 1).state == State::kUnloading; });
  catalog_->RefuseLoads();
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Unload("n").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Served("n"), 1) << "it serves until the end";
  EXPECT_FALSE(told.ended.HasBeenNotified());
  user.reset();
  EXPECT_TRUE(told.Await().ok()) << told.status;
}

}  // namespace
}  // namespace saccade::server

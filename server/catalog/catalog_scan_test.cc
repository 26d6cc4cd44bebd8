// Models that come, change, move and leave while the catalog polls its repositories.
#include <filesystem>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog.h"
#include "server/catalog/testing/catalog_fixture.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;
using CatalogScanTest = CatalogTest;

TEST_F(CatalogScanTest, PollingTakesUpANewVersionAndLetsTheOldOneGo) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  EXPECT_EQ(Served("m"), 1);
  Write("m", 2);
  Eventually([&] { return Served("m") == 2; });
  Eventually([&] { return catalog_->Index().size() == 1; });
  EXPECT_EQ(catalog_->FindReady("m", 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CatalogScanTest, WhatFailsToLoadLeavesTheOldVersionServing) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  std::filesystem::create_directory(repository_.path() / "m" / "2");
  Eventually([&] { return Line("m", 2).state == State::kUnavailable && !Line("m", 2).reason.empty(); });
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(Line("m", 1).state, State::kReady);
  repository_.Write("m/config.pbtxt", "nonsense");
  Eventually([&] { return !Line("m", 1).reason.empty(); });
  EXPECT_THAT(Line("m", 1).reason, HasSubstr("m/config.pbtxt:1:"));
  EXPECT_EQ(Line("m", 1).state, State::kReady);
  Write("m", 2);
  Eventually([&] { return Served("m") == 2; });
  EXPECT_EQ(Line("m", 2).reason, "");
}

TEST_F(CatalogScanTest, AChangedConfigurationReloads) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  EXPECT_EQ((*catalog_->FindReady("m", 0))->settings().options.count("delay_ms"), 0u);
  Write("m", 1, "parameters { key: \"delay_ms\" value { string_value: \"1\" } }");
  Eventually([&] { return (*catalog_->FindReady("m", 0))->settings().options.count("delay_ms") == 1; });
}

TEST_F(CatalogScanTest, PollingTakesUpNewModelsAndLetsThoseGoThatLeave) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  Write("n", 1);
  Eventually([&] { return Served("n") == 1; });
  std::filesystem::remove_all(repository_.path() / "m");
  Eventually([&] { return catalog_->FindReady("m", 0).status().code() == absl::StatusCode::kNotFound; });
  EXPECT_EQ(Served("n"), 1);
}

TEST_F(CatalogScanTest, AModelThatMovesToAnotherRepositoryIsLoadedFromThere) {
  const TestRepository other;
  Write("m", 1);
  Write("stays", 1);
  WriteTo(other, "stays_too", 1);
  ASSERT_TRUE(Start({.repositories = {repository_.string(), other.string()},
                     .control = ModelControl::kPoll,
                     .cores = 2})
                  .ok());
  const auto is_from = [&](const TestRepository& repository) {
    const auto found = catalog_->FindReady("m", 0);
    return found.ok() && (*found)->settings().repository == repository.string();
  };
  EXPECT_TRUE(is_from(repository_));
  std::filesystem::rename(repository_.path() / "m", other.path() / "m");
  Eventually([&] { return is_from(other); });
  // The repository that has it now is scanned before the one that it leaves.
  std::filesystem::rename(other.path() / "m", repository_.path() / "m");
  Eventually([&] { return is_from(repository_); });
}

TEST_F(CatalogScanTest, TheLastModelOfARepositoryMovesToAnother) {
  const TestRepository other;
  const TestRepository nowhere;
  Write("m", 1);
  Write("unmounted", 1);
  WriteTo(other, "stays", 1);
  ASSERT_TRUE(Start({.repositories = {repository_.string(), other.string()},
                     .control = ModelControl::kPoll,
                     .cores = 2})
                  .ok());
  std::filesystem::rename(repository_.path() / "unmounted", nowhere.path() / "unmounted");
  std::filesystem::rename(repository_.path() / "m", other.path() / "m");
  Eventually([&] {
    const auto found = catalog_->FindReady("m", 0);
    return found.ok() && (*found)->settings().repository == other.string();
  });
  EXPECT_EQ(Served("unmounted"), 1) << "no other repository has it";
}

TEST_F(CatalogScanTest, ACopyInAnotherRepositoryMayLeave) {
  const TestRepository other;
  Write("m", 1);
  WriteTo(other, "stays", 1);
  ASSERT_TRUE(Start({.repositories = {repository_.string(), other.string()},
                     .control = ModelControl::kPoll,
                     .cores = 2})
                  .ok());
  WriteTo(other, "m", 1);
  WriteTo(other, "n", 1);
  Eventually([&] { return Served("n") == 1; });
  std::filesystem::remove_all(other.path() / "m");
  WriteTo(other, "o", 1);
  Eventually([&] { return Served("o") == 1; });
  EXPECT_EQ(Served("m"), 1);
}

TEST_F(CatalogScanTest, AVanishedRepositoryKeepsWhatIsLoaded) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  const std::filesystem::path away = repository_.string() + ".away";
  std::filesystem::rename(repository_.path(), away);
  for (int looks = 0; looks < 20; ++looks) {
    clock_.Advance(absl::Seconds(15));
    std::this_thread::yield();
    ASSERT_EQ(Served("m"), 1);
  }
  std::filesystem::rename(away, repository_.path());
  Write("m", 2);
  Eventually([&] { return Served("m") == 2; });
}

}  // namespace
}  // namespace saccade::server

#include "server/catalog/catalog.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"
#include "server/repository/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

constexpr char kIdentity[] =
    "max_batch_size: 2 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n";

// All versions serve, and version 2 is a shadow version.
constexpr char kShadow[] =
    "version_policy { all { } } parameters { key: \"shadow\" value { string_value: \"version=2,share=1\" } "
    "} ";

// Version 2 is promoted after one request that agrees.
constexpr char kPromote[] =
    "parameters { key: \"promote\" value { string_value: \"agreement >= 0.5 after 1 requests\" } }";

// A status passed to a callback.
struct Told {
  absl::Notification ended;
  absl::Status status;

  Catalog::Done Done() {
    return [this](absl::Status told) {
      status = std::move(told);
      ended.Notify();
    };
  }
  const absl::Status& Await() {
    ended.WaitForNotification();
    return status;
  }
};

// Stops one thread at its next look at the clock, which a device does with its lock held.
class StoppingClock final : public Clock {
 public:
  absl::Time Now() override {
    if (std::exchange(stops_here, false)) {
      stopped.Notify();
      released.WaitForNotification();
    }
    return Clock::Real()->Now();
  }
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    return Clock::Real()->AwaitUntil(mu, condition, deadline);
  }

  static thread_local bool stops_here;
  absl::Notification stopped;
  absl::Notification released;
};

thread_local bool StoppingClock::stops_here = false;

class CatalogTest : public testing::Test {
 protected:
  void Write(absl::string_view model, int version, absl::string_view config = "") const {
    WriteTo(repository_, model, version, config);
  }
  static void WriteTo(const TestRepository& repository, absl::string_view model, int version,
                      absl::string_view config = "") {
    repository.Write(absl::StrCat(model, "/config.pbtxt"), absl::StrCat(kIdentity, config));
    repository.Write(absl::StrCat(model, "/", version, "/weights.safetensors"), "");
  }

  // Starts the catalog and returns the first failure of the initial load.
  absl::Status Start(ModelControl control, std::vector<std::string> load_at_start = {}) {
    return Start({.repositories = {repository_.string()},
                  .control = control,
                  .load_at_start = std::move(load_at_start),
                  .cores = 2});
  }
  absl::Status Start(CatalogOptions options) { return StartOn(&clock_, std::move(options)); }
  absl::Status StartOn(Clock* clock, CatalogOptions options) {
    catalog_.emplace(std::move(options), clock, &metrics_);
    if (absl::Status scan = catalog_->Scan(); !scan.ok()) return scan;
    Told loaded;
    catalog_->Start({.loaded = [&](const absl::Status& first_failure) { loaded.Done()(first_failure); }});
    return loaded.Await();
  }

  // Advances the clock until the catalog has seen the change that the test is about.
  template <typename Condition>
  void Eventually(const Condition& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "it did not happen";
      clock_.Advance(absl::Seconds(15));
      std::this_thread::yield();
    }
  }

  // The same without advancing the clock, for what must not wait for a scan or would run into a timeout.
  template <typename Condition>
  static void Soon(const Condition& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (!condition()) {
      ASSERT_LT(absl::Now(), end) << "it did not happen";
      std::this_thread::yield();
    }
  }

  int64_t Served(absl::string_view model, int64_t version = 0) const {
    const auto found = catalog_->FindReady(model, version);
    return found.ok() ? (*found)->version() : 0;
  }
  IndexEntry Line(const std::string& model, int64_t version) const {
    for (const IndexEntry& line : catalog_->Index())
      if (line.name == model && line.version == version) return line;
    return {};
  }
  absl::Status Load(const std::string& name, std::optional<std::string> config = std::nullopt) {
    Told told;
    catalog_->Load(name, std::move(config), told.Done());
    return told.Await();
  }
  absl::Status Unload(const std::string& name) {
    Told told;
    catalog_->Unload(name, false, told.Done());
    return told.Await();
  }

  // Runs `action` on another thread while a request holds the lock of the devices of this version of model
  // "m". Returns whether it ends. REQUIRES: the catalog's clock is `stopping_`. Called once.
  bool EndsWhileDevicesAreLocked(int64_t version, const std::function<void()>& action) {
    const auto found = catalog_->FindReady("m", version);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return false;
    std::thread request([&] {
      StoppingClock::stops_here = true;
      const std::vector<int64_t> buckets = {0};
      EXPECT_TRUE((*found)->Consider({}, buckets).ok());
    });
    stopping_.stopped.WaitForNotification();
    absl::Notification ended;
    std::thread acting([&] {
      action();
      ended.Notify();
    });
    const bool ends = ended.WaitForNotificationWithTimeout(absl::Seconds(60));
    stopping_.released.Notify();
    request.join();
    acting.join();
    return ends;
  }

  // Compares a request of model "m" with its shadow version, and returns once that was promoted. Its rule
  // wants one request.
  std::shared_ptr<Shadow> PromoteSecondVersion() {
    EXPECT_EQ(Served("m"), 1);
    std::shared_ptr<Shadow> trial = (*catalog_->FindReady("m", 1))->shadow();
    EXPECT_NE(trial, nullptr);
    if (trial == nullptr) return trial;
    const ComparedAnswer answer = {.results = {models::Classification{.logits = {0, 1}}}, .outputs = {}};
    trial->EndAnswered({.shadow = (*catalog_->FindReady("m", 2))->identity()}, answer, answer, {},
                       clock_.Now());
    Eventually([&] {
      catalog_->Sweep();
      return Served("m") == 2;
    });
    return trial;
  }

  TestRepository repository_;
  FakeClock clock_;
  StoppingClock stopping_;
  Metrics metrics_{"test"};
  std::optional<Catalog> catalog_;
};

TEST_F(CatalogTest, AScrapeDoesNotWaitForTheLockOfTheDevices) {
  Write("m", 1);
  ASSERT_TRUE(StartOn(&stopping_, {.repositories = {repository_.string()}, .cores = 2}).ok());
  EXPECT_TRUE(EndsWhileDevicesAreLocked(1, [&] { catalog_->RefreshGauges(); }));
}

// A shadow version's thread may hold the lock for long, because it runs only on idle cores.
TEST_F(CatalogTest, NeitherADescriptionNorASweepWaitsForTheLockOfTheIdleCores) {
  Write("m", 2);
  Write("m", 1, kShadow);
  ASSERT_TRUE(StartOn(&stopping_, {.repositories = {repository_.string()}, .cores = 2}).ok());
  EXPECT_TRUE(EndsWhileDevicesAreLocked(2, [&] {
    catalog_->Sweep();
    const auto described = catalog_->Describe("m", 2);
    ASSERT_TRUE(described.ok()) << described.status();
    EXPECT_EQ(described->state, State::kReady);
    EXPECT_FALSE(described->timing);
  }));
  EXPECT_TRUE(catalog_->Describe("m", 1)->timing);
}

TEST_F(CatalogTest, ServesWhatThePolicyChooses) {
  Write("m", 1);
  Write("m", 3, "version_policy { all { } }");
  ASSERT_TRUE(Start(ModelControl::kNone).ok());
  EXPECT_EQ(Served("m"), 3);
  EXPECT_EQ(Served("m", 1), 1);
  EXPECT_THAT(std::string(catalog_->FindReady("m", 2).status().message()),
              HasSubstr("has no version 2 here; it serves version 1, 3"));
}

// Models of unknown kinds are looked at twice: before their turn, in case they can be loaded ahead, and in
// it.
TEST_F(CatalogTest, ModelsTakeTurnsOnTheNodes) {
  const auto delay = [](int ms) {
    return absl::StrCat("parameters { key: \"delay_ms\" value { string_value: \"", ms, "\" } }");
  };
  Write("m", 1, delay(1));
  Write("n", 1, delay(2));
  Catalog catalog({.repositories = {repository_.string()}, .cores = 2, .nodes = {{0}, {1}}}, &clock_,
                  &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Told loaded;
  catalog.Start({.loaded = [&](const absl::Status& first_failure) { loaded.Done()(first_failure); }});
  ASSERT_TRUE(loaded.Await().ok());
  std::vector<int> nodes;
  for (const char* name : {"m", "n"}) {
    const auto model = catalog.FindReady(name, 0);
    ASSERT_TRUE(model.ok()) << model.status();
    nodes.push_back((*model)->first_node());
  }
  EXPECT_THAT(nodes, testing::ElementsAre(0, 1));
}

TEST_F(CatalogTest, ABrokenVersionDoesNotKeepTheOthers) {
  Write("m", 1, "version_policy { all { } }");
  std::filesystem::create_directory(repository_.path() / "m" / "2");
  EXPECT_THAT(std::string(Start(ModelControl::kNone).message()), HasSubstr("m/2: has no weights"));
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(Line("m", 2).state, State::kUnavailable);
  EXPECT_THAT(Line("m", 2).reason, HasSubstr("has no weights"));
  EXPECT_THAT(std::string(catalog_->FindReady("m", 2).status().message()),
              HasSubstr("model 'm' version 2 is unavailable: m/2: has no weights"));
}

TEST_F(CatalogTest, PollingTakesUpANewVersionAndLetsTheOldOneGo) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  EXPECT_EQ(Served("m"), 1);
  Write("m", 2);
  Eventually([&] { return Served("m") == 2; });
  Eventually([&] { return catalog_->Index().size() == 1; });
  EXPECT_EQ(catalog_->FindReady("m", 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CatalogTest, WhatFailsToLoadLeavesTheOldVersionServing) {
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

TEST_F(CatalogTest, AChangedConfigurationReloads) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  EXPECT_EQ((*catalog_->FindReady("m", 0))->settings().options.count("delay_ms"), 0u);
  Write("m", 1, "parameters { key: \"delay_ms\" value { string_value: \"1\" } }");
  Eventually([&] { return (*catalog_->FindReady("m", 0))->settings().options.count("delay_ms") == 1; });
}

TEST_F(CatalogTest, PollingTakesUpNewModelsAndLetsThoseGoThatLeave) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  Write("n", 1);
  Eventually([&] { return Served("n") == 1; });
  std::filesystem::remove_all(repository_.path() / "m");
  Eventually([&] { return catalog_->FindReady("m", 0).status().code() == absl::StatusCode::kNotFound; });
  EXPECT_EQ(Served("n"), 1);
}

TEST_F(CatalogTest, AModelThatMovesToAnotherRepositoryIsLoadedFromThere) {
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

TEST_F(CatalogTest, TheLastModelOfARepositoryMovesToAnother) {
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

TEST_F(CatalogTest, ACopyInAnotherRepositoryMayLeave) {
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

TEST_F(CatalogTest, AVanishedRepositoryKeepsWhatIsLoaded) {
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

TEST_F(CatalogTest, NamesTheModelsThatAreMissing) {
  Write("m", 1);
  for (const char* name : {"n", "o"}) std::filesystem::create_directory(repository_.path() / name);
  EXPECT_FALSE(Start(ModelControl::kNone).ok());
  EXPECT_THAT(catalog_->Missing(), testing::UnorderedElementsAre("n", "o"));
}

TEST_F(CatalogTest, OnRequestWhatIsNamedIsLoaded) {
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

TEST_F(CatalogTest, AStarLoadsAll) {
  Write("m", 1);
  Write("n", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"*"}).ok());
  EXPECT_EQ(Served("m") + Served("n"), 2);
}

TEST_F(CatalogTest, AModelThatIsNotThereCannotBeLoadedAtStart) {
  EXPECT_THAT(std::string(Start(ModelControl::kExplicit, {"m"}).message()),
              HasSubstr("--load-model names 'm'"));
}

TEST_F(CatalogTest, OrdersAreChecked) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit).ok());
  EXPECT_EQ(Load("../m").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Unload("m/1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Load("nowhere").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Unload("nowhere").code(), absl::StatusCode::kNotFound);
}

TEST_F(CatalogTest, AnOrderThatThrowsEndsNeitherTheThreadNorOtherOrders) {
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

TEST_F(CatalogTest, OrdersNeedTheModeForThem) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kNone).ok());
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Unload("m").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Served("m"), 1);
}

TEST_F(CatalogTest, WhoIsToldThatALoadEndedFindsItsReadiness) {
  Write("m", 1);
  // Written and read on the catalog's thread only.
  std::map<std::string, bool> ready;
  Catalog catalog({.repositories = {repository_.string()}, .control = ModelControl::kExplicit, .cores = 2},
                  &clock_, &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Told started;
  catalog.Start({.model_changed = [&](const std::string& model, bool now) { ready[model] = now; },
                 .loaded = [&](const absl::Status& first_failure) { started.Done()(first_failure); }});
  ASSERT_TRUE(started.Await().ok());
  bool was_ready = false;
  Told loaded;
  catalog.Load("m", std::nullopt, [&](const absl::Status& status) {
    was_ready = ready["m"];
    loaded.Done()(status);
  });
  ASSERT_TRUE(loaded.Await().ok());
  EXPECT_TRUE(was_ready);
  bool is_ready = true;
  Told unloaded;
  catalog.Unload("m", false, [&](const absl::Status& status) {
    is_ready = ready["m"];
    unloaded.Done()(status);
  });
  ASSERT_TRUE(unloaded.Await().ok());
  EXPECT_FALSE(is_ready);
}

TEST_F(CatalogTest, ARequestsConfigurationHoldsUntilTheNextLoad) {
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

TEST_F(CatalogTest, UnloadingWaitsForWhoUsesTheModel) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Told told;
  catalog_->Unload("m", false, told.Done());
  Soon([&] { return catalog_->FindReady("m", 0).status().code() == absl::StatusCode::kUnavailable; });
  EXPECT_TRUE(user->CheckReady().ok()) << "who has found it may use it";
  user.reset();
  EXPECT_TRUE(told.Await().ok()) << told.status;
}

TEST_F(CatalogTest, UnloadingWaitsNoLongerThanItsTimeout) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Told told;
  catalog_->Unload("m", false, told.Done());
  Eventually([&] { return told.ended.HasBeenNotified(); });
  EXPECT_EQ(told.Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Line("m", 1).state, State::kUnloading);
  user.reset();
  Eventually([&] { return Line("m", 1).state == State::kUnavailable; });
}

TEST_F(CatalogTest, AnUnloadThatStillWaitsAtTheEndIsAnswered) {
  Write("m", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  const auto user = *catalog_->FindReady("m", 0);
  Told told;
  catalog_->Unload("m", false, told.Done());
  Soon([&] { return Line("m", 1).state == State::kUnloading; });
  catalog_->Close();
  ASSERT_TRUE(told.ended.HasBeenNotified());
  EXPECT_EQ(told.status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(CatalogTest, BeforeTheEndLoadsAreRefusedAndUnloadsAreCompleted) {
  Write("m", 1);
  Write("n", 1);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m", "n"}).ok());
  auto user = *catalog_->FindReady("m", 0);
  Told told;
  catalog_->Unload("m", false, told.Done());
  Soon([&] { return Line("m", 1).state == State::kUnloading; });
  catalog_->RefuseLoads();
  EXPECT_EQ(Load("m").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Unload("n").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Served("n"), 1) << "it serves until the end";
  EXPECT_FALSE(told.ended.HasBeenNotified());
  user.reset();
  EXPECT_TRUE(told.Await().ok()) << told.status;
}

TEST_F(CatalogTest, LabelsNameVersions) {
  Write("m", 1);
  Write("m", 2,
        "version_policy { all { } } "
        "parameters { key: \"version_labels\" value { string_value: \"stable=1,canary=2\" } }");
  ASSERT_TRUE(Start(ModelControl::kNone).ok());
  EXPECT_EQ(*catalog_->VersionOf("m", ""), 0);
  EXPECT_EQ(*catalog_->VersionOf("m", "2"), 2);
  for (const char* odd : {" 2", "2 ", "+2", "02", "0", "-1", "2.0", "99999999999999999999"}) {
    EXPECT_EQ(catalog_->VersionOf("m", odd).status().code(), absl::StatusCode::kInvalidArgument) << odd;
  }
  EXPECT_EQ(*catalog_->VersionOf("m", "stable"), 1);
  EXPECT_THAT(std::string(catalog_->VersionOf("m", "best").status().message()),
              HasSubstr("one of model 'm's labels canary, stable"));
  EXPECT_EQ(catalog_->VersionOf("n", "stable").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CatalogTest, AShadowVersionAnswersOnlyWhoNamesIt) {
  Write("m", 1);
  Write("m", 2, kShadow);
  ASSERT_TRUE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(Served("m", 2), 2);
  const auto primary = catalog_->FindReady("m", 0);
  ASSERT_TRUE(primary.ok());
  ASSERT_NE((*primary)->shadow(), nullptr);
  EXPECT_EQ((*primary)->shadow()->rule().version, 2);
  EXPECT_EQ((*(*primary)->FindShadow())->version(), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 2))->shadow(), nullptr);
  // Without the parameter it is a version like others.
  Write("m", 2, "version_policy { all { } }");
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), nullptr);
}

TEST_F(CatalogTest, AfterAPromotionNewFilesOfTheShadowVersionAreTriedAnew) {
  Write("m", 1);
  Write("m", 2, absl::StrCat(kShadow, kPromote));
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  const std::shared_ptr<Shadow> trial = PromoteSecondVersion();
  ASSERT_NE(trial, nullptr);
  EXPECT_FALSE(trial->Wants(/*waiting=*/false));
  repository_.Write("m/2/weights.safetensors", "new");
  Eventually([&] { return trial->Wants(/*waiting=*/false); });
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), trial) << "only the shadow version was loaded again";
  Eventually([&] { return Served("m") == 1; });
}

TEST_F(CatalogTest, NewFilesOfAShadowVersionThatWasPromotedBeforeTheRestartAreTriedAnew) {
  const TestRepository state;
  const CatalogOptions options = {.repositories = {repository_.string()},
                                  .control = ModelControl::kPoll,
                                  .cores = 2,
                                  .state_folder = state.string()};
  Write("m", 1);
  Write("m", 2, absl::StrCat(kShadow, kPromote));
  ASSERT_TRUE(Start(options).ok());
  ASSERT_NE(PromoteSecondVersion(), nullptr);
  catalog_.reset();
  ASSERT_TRUE(Start(options).ok());
  ASSERT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->shadow(), nullptr);
  repository_.Write("m/2/weights.safetensors", "new");
  Eventually([&] { return Served("m") == 1; });
  const auto replaced = *catalog_->FindReady("m", 1);
  ASSERT_NE(replaced->shadow(), nullptr);
  EXPECT_TRUE(replaced->shadow()->Wants(/*waiting=*/false));
  EXPECT_TRUE(replaced->FindShadow().ok());
  EXPECT_NE(PromoteSecondVersion(), nullptr);
}

// Its earlier files would compute the copies, and not only on idle cores.
TEST_F(CatalogTest, APromotedVersionWhoseNewFilesCannotBeLoadedComputesNoCopies) {
  Write("m", 1);
  const std::string config = absl::StrCat(kShadow, kPromote);
  Write("m", 2, config);
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  ASSERT_NE(PromoteSecondVersion(), nullptr);
  // Both versions are to be loaded again.
  std::filesystem::remove(repository_.path() / "m/2/weights.safetensors");
  repository_.Write("m/2/nothing", "");
  repository_.Write("m/config.pbtxt", absl::StrCat(kIdentity, config, "# changed\n"));
  const auto shadow_of_first = [&] { return (*catalog_->FindReady("m", 1))->shadow(); };
  const std::shared_ptr<Shadow> trial = shadow_of_first();
  Eventually([&] { return shadow_of_first() != trial; });
  ASSERT_NE(shadow_of_first(), nullptr);
  EXPECT_EQ(Served("m"), 2);
  EXPECT_EQ((*catalog_->FindReady("m", 1))->FindShadow().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CatalogTest, AShadowVersionDoesNotStandInForAVersionThatCannotBeLoaded) {
  Write("m", 2, kShadow);
  repository_.Write("m/1/nothing", "");
  EXPECT_FALSE(Start(ModelControl::kExplicit, {"m"}).ok());
  EXPECT_EQ(Served("m"), 0);
  EXPECT_EQ(Served("m", 2), 2);
}

TEST_F(CatalogTest, AWarmUpOfTheConfigurationIsComputed) {
  const auto warmup = [](absl::string_view dims) {
    return absl::StrCat(
        "model_warmup { name: \"w\" count: 2 inputs { key: \"image\" value { data_type: TYPE_FP32 ",
        "dims: ", dims, " random_data: true } } }");
  };
  Write("m", 1, warmup("[ 1, 2, 3, 4 ]"));
  ASSERT_TRUE(Start(ModelControl::kPoll).ok());
  EXPECT_EQ(Served("m"), 1);
  Write("n", 1, warmup("[ 3, 4 ]"));
  Eventually([&] { return !Line("n", 1).reason.empty(); });
  EXPECT_THAT(Line("n", 1).reason, HasSubstr("model_warmup 'w': input 'image': the shape is [1,3,4]"));
}

// Whether the trial finds another number depends on the machine and its load.
TEST_F(CatalogTest, ThreadsAreTriedAgainOnceTheLoadBesideTheDaemonHasChanged) {
  for (const char* model : {"another", "m"}) Write(model, 1);
  catalog_.emplace(CatalogOptions{.repositories = {repository_.string()},
                                  .cores = 2,
                                  .core_use = [] { return CoreUse{.beside = 1, .own = 0}; }},
                   &clock_, &metrics_);
  ASSERT_TRUE(catalog_->Scan().ok());
  Told loaded;
  catalog_->Start({.loaded = [&](const absl::Status& first_failure) { loaded.Done()(first_failure); }});
  ASSERT_TRUE(loaded.Await().ok());
  // New files are not taken up without an order, so their model is left as it is.
  repository_.Write("another/1/weights.safetensors", "other");
  const auto trials = [&](absl::string_view result) {
    const std::string line = absl::StrCat("saccade_thread_trials_total{result=\"", result, "\"} ");
    const std::string text = metrics_.Exposition();
    const size_t found = text.find(line);
    return found == std::string::npos ? '?' : text[found + line.size()];
  };
  EXPECT_EQ(trials("kept"), '0');
  EXPECT_EQ(trials("changed"), '0');
  Eventually([&] {
    catalog_->Sweep();
    return trials("kept") == '1' || trials("changed") == '1';
  });
  EXPECT_EQ(trials("failed"), '0');
  EXPECT_EQ(Served("m"), 1);
  EXPECT_NE(trials("kept") == '1', trials("changed") == '1') << "one model was tried, once";
}

TEST_F(CatalogTest, ReadinessIsToldByModel) {
  Write("m", 1);
  std::filesystem::create_directory(repository_.path() / "n");
  repository_.Write("n/config.pbtxt", kIdentity);
  EXPECT_FALSE(Start(ModelControl::kNone).ok());
  EXPECT_THAT(std::string(catalog_->CheckAllReady().message()), HasSubstr("model 'n' is unavailable"));
}

}  // namespace
}  // namespace saccade::server

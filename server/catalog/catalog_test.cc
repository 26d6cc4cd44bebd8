#include "server/catalog/catalog.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/catalog_fixture.h"
#include "server/catalog/testing/identity_config.h"
#include "server/catalog/testing/pending.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using State = ModelSnapshot::State;

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
  Catalog catalog({.repositories = {repository_.string()},
                   .cores = 2,
                   .nodes = {{.processors = {0}}, {.processors = {1}}}},
                  &clock_, &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Pending loaded;
  catalog.Start({.loaded = loaded.End()});
  ASSERT_TRUE(loaded.Await().ok());
  std::vector<int> nodes;
  for (const char* name : {"m", "n"}) {
    const auto model = catalog.FindReady(name, 0);
    ASSERT_TRUE(model.ok()) << model.status();
    nodes.push_back((*model)->first_node());
  }
  EXPECT_THAT(nodes, ::testing::ElementsAre(0, 1));
}

TEST_F(CatalogTest, APassTakesAllCoresOfAQuotaThatFitsOnANode) {
  Write("m", 1);
  Catalog catalog({.repositories = {repository_.string()},
                   .cores = 4,
                   .nodes = {{.processors = {0}, .cores = 32}, {.processors = {0}, .cores = 32}},
                   .warm_up = absl::ZeroDuration()},
                  &clock_, &metrics_);
  ASSERT_TRUE(catalog.Scan().ok());
  Pending loaded;
  catalog.Start({.loaded = loaded.End()});
  ASSERT_TRUE(loaded.Await().ok());
  const auto model = catalog.FindReady("m", 0);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto timing = (*model)->Timing();
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->threads, 4);
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

TEST_F(CatalogTest, NamesTheModelsThatAreMissing) {
  Write("m", 1);
  for (const char* name : {"n", "o"}) std::filesystem::create_directory(repository_.path() / name);
  EXPECT_FALSE(Start(ModelControl::kNone).ok());
  EXPECT_THAT(catalog_->Missing(), ::testing::UnorderedElementsAre("n", "o"));
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
                                  .core_use = [] { return CoreUse{.by_others = 1, .own = 0}; }},
                   &clock_, &metrics_);
  ASSERT_TRUE(catalog_->Scan().ok());
  Pending loaded;
  catalog_->Start({.loaded = loaded.End()});
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

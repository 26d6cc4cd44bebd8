#include "server/lifecycle/check_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kConfig[] = R"(parameters { key: "architecture" value { string_value: "identity" } })";

class CheckConfigTest : public testing::Test {
 protected:
  CheckConfigTest() {
    std::string name = testing::TempDir() + "check_configXXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~CheckConfigTest() override { fs::remove_all(root_); }

  // Adds a model that needs no weights to a repository, which is listed in the flags.
  void Add(const std::string& repository, const std::string& model,
           const std::vector<std::string>& versions = {"1"}, const std::string& config = kConfig) {
    for (const std::string& version : versions) {
      fs::create_directories(root_ / repository / model / version);
      std::ofstream(root_ / repository / model / version / "weights.safetensors");
    }
    std::ofstream(root_ / repository / model / "config.pbtxt") << config;
    const std::string path = (root_ / repository).string();
    auto& all = flags_.model_repositories;
    if (std::find(all.begin(), all.end(), path) == all.end()) all.push_back(path);
  }

  std::vector<std::string> Lines() {
    std::ostringstream out;
    status_ = CheckConfig(flags_, out);
    return absl::StrSplit(out.str(), '\n', absl::SkipEmpty());
  }

  fs::path root_;
  Flags flags_;
  absl::Status status_;
};

TEST_F(CheckConfigTest, EachVersionHasALine) {
  Add("a", "first", {"1", "2"}, std::string(kConfig) + " version_policy { all {} }");
  Add("a", "second");
  EXPECT_THAT(Lines(), ElementsAre("OK      first version 1 (identity)", "OK      first version 2 (identity)",
                                   "OK      second version 1 (identity)", "3 checked, 0 with errors"));
  EXPECT_TRUE(status_.ok());
}

TEST_F(CheckConfigTest, AnEmptyRepositoryIsAWarning) {
  fs::create_directories(root_);
  flags_.model_repositories = {root_.string()};
  EXPECT_THAT(Lines(),
              ElementsAre(AllOf(StartsWith("WARNING "), HasSubstr("holds no models; expected a folder")),
                          "0 checked, 0 with errors"));
  EXPECT_TRUE(status_.ok());
}

TEST_F(CheckConfigTest, ARepositoryThatCannotBeReadIsAnError) {
  flags_.model_repositories = {(root_ / "missing").string()};
  EXPECT_THAT(Lines(),
              ElementsAre(AllOf(StartsWith("ERROR   "), HasSubstr("missing")), "1 checked, 1 with errors"));
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CheckConfigTest, OneErrorDoesNotHideTheOthers) {
  Add("a", "broken", {"1"}, "this is no configuration");
  Add("a", "sound");
  Add("a", "wrong", {"1"},
      R"(parameters { key: "architecture" value { string_value: "identity" } }
         parameters { key: "delay_ms" value { string_value: "-1" } })");
  EXPECT_THAT(Lines(), ElementsAre("OK      sound version 1 (identity)",
                                   AllOf(StartsWith("ERROR   "), HasSubstr("delay_ms")),
                                   StartsWith("ERROR   broken: "), "3 checked, 2 with errors"));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("2 of 3"));
}

// The daemon does not start with two models of the same name. That is one error, whatever the number of
// versions.
TEST_F(CheckConfigTest, AModelInTwoRepositoriesIsOneError) {
  Add("a", "m");
  Add("b", "m", {"1", "2"}, std::string(kConfig) + " version_policy { all {} }");
  Add("b", "other");
  EXPECT_THAT(Lines(),
              ElementsAre("OK      m version 1 (identity)",
                          AllOf(StartsWith("ERROR   m: is in both "), HasSubstr((root_ / "a").string()),
                                HasSubstr((root_ / "b").string())),
                          "OK      other version 1 (identity)", "3 checked, 1 with errors"));
  EXPECT_FALSE(status_.ok());
}

TEST_F(CheckConfigTest, ABrokenModelInTwoRepositoriesIsADuplicateToo) {
  Add("a", "m");
  Add("b", "m", {"1"}, "this is no configuration");
  Add("c", "m");
  EXPECT_THAT(Lines(), ElementsAre("OK      m version 1 (identity)", HasSubstr("m: is in both"),
                                   HasSubstr("m: is in both"), "3 checked, 2 with errors"));
}

TEST_F(CheckConfigTest, DrillsNeedAFlag) {
  Add("a", "drill", {"1"},
      std::string(kConfig) + R"( parameters { key: "fail_at" value { string_value: "5" } })");
  EXPECT_THAT(Lines(),
              ElementsAre(AllOf(HasSubstr("fail_at"), HasSubstr("remove it"), HasSubstr("--allow-drills")),
                          "1 checked, 1 with errors"));
  flags_.permissions.drills = true;
  EXPECT_THAT(Lines(), ElementsAre("OK      drill version 1 (identity)", "1 checked, 0 with errors"));
}

TEST_F(CheckConfigTest, WarningsComeFirstAndAreNoErrors) {
  flags_.warnings = {"--rate-limit is ignored: there is none"};
  Add("a", "m");
  EXPECT_THAT(Lines(), ElementsAre("WARNING --rate-limit is ignored: there is none",
                                   "OK      m version 1 (identity)", "1 checked, 0 with errors"));
}

}  // namespace
}  // namespace saccade::server

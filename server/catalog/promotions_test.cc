#include "server/catalog/promotions.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/promote_config.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr char kRule[] = "agreement >= 0.995 after 1000 requests";

ModelStamp Stamp() { return {.shared = "config.pbtxt 1", .versions = {{3, "weights 3"}, {4, "weights 4"}}}; }

Promotion Decided(bool promoted) {
  Promotion promotion = {.rule = kRule, .replaces = 3, .shadow = 4};
  promotion.decision.promoted = promoted;
  promotion.decision.at = absl::FromUnixSeconds(7);
  promotion.decision.reason = "agreement is 0.9\nand \"so on\"";
  promotion.decision.measures.compared = 1000;
  promotion.decision.measures.values = {0.9, 0, std::numeric_limits<double>::infinity(), 1, 2, 3};
  return promotion;
}

ModelEntry Entry(const std::string& rule = kRule) {
  ModelEntry entry;
  entry.settings.name = "m";
  entry.settings.version_labels = {{"stable", 3}, {"canary", 4}};
  entry.settings.shadow = ShadowRule{.version = 4, .share = 0.1};
  entry.settings.shadow->promote = *ReadPromoteRule(rule);
  entry.settings.shadow->promote->replaces = 3;
  return entry;
}

class PromotionsTest : public ::testing::Test {
 protected:
  std::string Text() const {
    std::ifstream file(folder_ + "/promotions.txt");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // The entry as a start finds it.
  ModelEntry Found(const ModelStamp& stamp, ModelEntry entry = Entry()) const {
    Promotions(folder_).Adjust(stamp, &entry);
    return entry;
  }

  const TestRepository temporary_;
  // Not there yet.
  const std::string folder_ = (temporary_.path() / "state").string();
};

TEST_F(PromotionsTest, APromotedVersionAnswersAfterARestart) {
  Promotions(folder_).Keep("m", Decided(true), Stamp());
  const ModelEntry entry = Found(Stamp());
  EXPECT_FALSE(entry.settings.shadow);
  EXPECT_EQ(entry.settings.version_labels, (std::map<std::string, int64_t>{{"stable", 4}, {"canary", 4}}));
  ASSERT_TRUE(entry.settings.promotion);
  EXPECT_EQ(entry.settings.promotion->shadow, 4);
  EXPECT_EQ(entry.settings.promotion->replaces, 3);
  EXPECT_EQ(entry.settings.promotion->decision.at, absl::FromUnixSeconds(7));
  EXPECT_EQ(entry.settings.promotion->decision.reason, "agreement is 0.9\nand \"so on\"");
  EXPECT_EQ(entry.settings.promotion->decision.measures.values, Decided(true).decision.measures.values);
}

TEST_F(PromotionsTest, ARefusalIsNotForgottenByARestart) {
  Promotions(folder_).Keep("m", Decided(false), Stamp());
  const ModelEntry entry = Found(Stamp());
  ASSERT_TRUE(entry.settings.shadow && entry.settings.shadow->decided);
  EXPECT_FALSE(entry.settings.shadow->decided->promoted);
  EXPECT_EQ(entry.settings.version_labels.at("stable"), 3);
  EXPECT_FALSE(entry.settings.promotion);
}

TEST_F(PromotionsTest, OtherFilesOrAnotherRuleAreTriedAnew) {
  Promotions(folder_).Keep("m", Decided(true), Stamp());
  ModelStamp other = Stamp();
  other.shared = "config.pbtxt 2";
  EXPECT_TRUE(Found(other).settings.shadow);
  other = Stamp();
  other.versions[4] = "weights 5";
  EXPECT_TRUE(Found(other).settings.shadow);
  other = Stamp();
  other.versions[3] = "weights 5";
  EXPECT_TRUE(Found(other).settings.shadow);
  EXPECT_TRUE(Found(Stamp(), Entry("agreement >= 0.996 after 1000 requests")).settings.shadow);
  ModelEntry moved = Entry();
  moved.settings.shadow->promote->replaces = 2;
  EXPECT_TRUE(Found(Stamp(), moved).settings.shadow);
  moved = Entry();
  moved.settings.name = "n";
  EXPECT_TRUE(Found(Stamp(), moved).settings.shadow);
  other = Stamp();
  other.versions[5] = "weights 5";
  EXPECT_FALSE(Found(other).settings.shadow) << "a third version says nothing about the two";
}

TEST_F(PromotionsTest, SeveralDaemonsKeepTheirModelsInOneFile) {
  Promotions one(folder_);
  Promotions other(folder_);
  one.Keep("a", Decided(true), Stamp());
  other.Keep("b", Decided(false), Stamp());
  const auto kept = ReadPromotions(Text());
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->count("a"), 1);
  EXPECT_EQ(kept->count("b"), 1);
}

TEST_F(PromotionsTest, WithoutAFolderADecisionLastsUntilTheEnd) {
  Promotions promotions("");
  promotions.Keep("m", Decided(true), Stamp());
  ModelEntry entry = Entry();
  promotions.Adjust(Stamp(), &entry);
  EXPECT_TRUE(entry.settings.promotion);
}

TEST_F(PromotionsTest, AFolderThatCannotBeWrittenLosesNothingElse) {
  Promotions promotions("/dev/null/folder");
  promotions.Keep("m", Decided(true), Stamp());
  ModelEntry entry = Entry();
  promotions.Adjust(Stamp(), &entry);
  EXPECT_TRUE(entry.settings.promotion);
}

TEST_F(PromotionsTest, ADamagedFileIsRefused) {
  const std::string text = WritePromotions({{"m", {Decided(false), "files"}}});
  ASSERT_TRUE(ReadPromotions(text).ok());
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(ReadPromotions(text.substr(0, size)).ok()) << size;
  const auto error = [&](const std::string& from, const std::string& to) {
    return std::string(ReadPromotions(absl::StrReplaceAll(text, {{from, to}})).status().message());
  };
  EXPECT_THAT(error("promotions 1", "promotions 2"), HasSubstr("line 1: expected saccade promotions 1"));
  EXPECT_THAT(error("rule agreement", "rule argument"), HasSubstr("line 4: expected rule TEXT"));
  EXPECT_THAT(error("shadow 4", "shadow -4"), HasSubstr("expected shadow N"));
  EXPECT_THAT(error("promoted 0", "promoted 2"), HasSubstr("expected promoted 0 or 1"));
  EXPECT_THAT(error("compared 1000", "compared 0"), HasSubstr("expected compared N"));
  EXPECT_THAT(error("inf", "nan"), HasSubstr("expected values and 6 numbers"));
  EXPECT_THAT(error(" inf", ""), HasSubstr("expected values and 6 numbers"));
  EXPECT_THAT(error("end 1", "end 2"), HasSubstr("expected end 1"));
  EXPECT_FALSE(ReadPromotions(std::string(kMaxPromotionsBytes + 1, ' ')).ok());
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/promotions.txt") << "nonsense";
  EXPECT_TRUE(Found(Stamp()).settings.shadow);
}

}  // namespace
}  // namespace saccade::server

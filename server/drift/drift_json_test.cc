#include "server/drift/drift_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json SomeReport() {
  DriftWatch watch(4, std::nullopt);
  for (int i = 0; i < 8; ++i) {
    DriftSample sample;
    sample.Set(Feature::kBrightness, i / 8.0);
    sample.classes = {{i % 3, 0.5}};
    sample.fingerprint = 1 + i % 5;
    watch.Add(sample);
  }
  return Json::parse(ToJson(watch.Report(), "m\xff", 7));
}

TEST(DriftJsonTest, AReportsReferenceIsAFile) {
  const Json report = SomeReport();
  EXPECT_EQ(report["version"], 7);
  EXPECT_EQ(report["seen"], 8);
  EXPECT_EQ(report["repeated"], 3);
  EXPECT_TRUE(report["reference_complete"]);
  EXPECT_GT(report["drift"]["brightness"], 0.1);
  const auto read = ReadDistribution(report["reference"].dump());
  ASSERT_TRUE(read.ok()) << read.status();
  DriftWatch second(4, *read);
  const Json again = Json::parse(ToJson(second.Report(), "m", 7));
  EXPECT_EQ(again["reference"], report["reference"]);
  EXPECT_TRUE(again["reference_from_file"]);
}

TEST(DriftJsonTest, SaysWhatIsWrongWithAFile) {
  const std::string good = SomeReport()["reference"].dump();
  const auto message = [](const std::string& text) {
    return std::string(ReadDistribution(text).status().message());
  };
  EXPECT_THAT(message("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(message(std::string(1 << 19, '[')), HasSubstr("expected a JSON object"));
  for (size_t cut = 0; cut < good.size(); ++cut) EXPECT_NE(message(good.substr(0, cut)), "") << cut;
  EXPECT_THAT(message(absl::StrReplaceAll(good, {{"\"items\":4", "\"items\":0"}})),
              HasSubstr("items: expected"));
  EXPECT_THAT(message(absl::StrReplaceAll(good, {{"brightness", "whiteness"}})),
              HasSubstr("features.brightness: expected a list of 16 numbers"));
  EXPECT_THAT(message(absl::StrReplaceAll(good, {{"0.5", "-1"}})), HasSubstr("classes.1: expected a number"));
  EXPECT_THAT(message(absl::StrReplaceAll(good, {{"0.5", "1e300"}})), HasSubstr("expected a number"));
  EXPECT_THAT(message(absl::StrReplaceAll(good, {{"\"2\":", "\"cat\":"}})), HasSubstr("found 'cat'"));
  EXPECT_EQ(message(good), "");
}

}  // namespace
}  // namespace saccade::server

#include "client/cli/tune/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_replace.h"

namespace saccade::client {
namespace {

using server::simulation::ToMilliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

Measurement Sound() {
  Measurement made;
  made.model = "net";
  made.version = 3;
  made.precision = "bf16";
  made.item_bytes = 1000;
  made.decode = absl::Microseconds(500);
  made.round_trip = absl::Microseconds(250);
  made.timing = {.buckets = {{.id = 7,
                              .name = "64x64",
                              .items = 30,
                              .passes = {absl::Milliseconds(4), absl::Milliseconds(6)},
                              .smallest = 1,
                              .largest = 2,
                              .deviation = 0.1},
                             {.id = 9,
                              .name = "",
                              .items = 10,
                              .passes = {absl::Milliseconds(8), absl::Milliseconds(12)},
                              .smallest = 1,
                              .largest = 2,
                              .deviation = 0.3}},
                 .instances = 1,
                 .threads = 2,
                 .cores = 4,
                 .max_queue_size = 256,
                 .model_bytes = 12345,
                 .resident_bytes = 67890};
  return made;
}

TEST(MeasurementTest, BecomesAModel) {
  const auto model = ToModel(Sound());
  EXPECT_EQ(model.threads, 2);
  EXPECT_EQ(model.max_instances(), 2);
  EXPECT_EQ(model.max_batch_size(), 2);
  EXPECT_DOUBLE_EQ(ToMilliseconds(model.outside), 0.75);
  EXPECT_DOUBLE_EQ(ToMilliseconds(model.decode), 0.5);
  EXPECT_DOUBLE_EQ(ToMilliseconds(model.passes[1][1]), 12);
  EXPECT_DOUBLE_EQ(model.deviation, 0.75 * 0.1 + 0.25 * 0.3);
  EXPECT_THAT(MixOf(Sound()), ElementsAre(0.75, 0.25));
  Measurement unused = Sound();
  for (BucketTiming& bucket : unused.timing.buckets) bucket.items = 0;
  EXPECT_THAT(MixOf(unused), ElementsAre(0.5, 0.5));
}

TEST(MeasurementTest, SurvivesAFile) {
  const auto read = FromJsonText(ToJsonText(Sound()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJsonText(*read), ToJsonText(Sound()));
  EXPECT_EQ(read->timing.buckets[1].passes[1], absl::Milliseconds(12));
  EXPECT_EQ(NameOf(read->timing.buckets[1]), "9");
}

std::string ErrorOf(const std::string& text) {
  const auto read = FromJsonText(text);
  EXPECT_FALSE(read.ok()) << text;
  return std::string(read.status().message());
}

TEST(MeasurementTest, DamagedFilesAreRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is not JSON of saccade tune --save"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("is not JSON of saccade tune --save"));
  EXPECT_THAT(ErrorOf("{\"version\": 2}"), HasSubstr("has version 2; expected 1"));
  EXPECT_THAT(ErrorOf("{\"version\": 1}"), HasSubstr("lacks a member"));
  const std::string sound = ToJsonText(Sound());
  const auto with = [&](const char* from, const char* to) {
    const std::string text = absl::StrReplaceAll(sound, {{from, to}});
    EXPECT_NE(text, sound) << from;
    return ErrorOf(text);
  };
  EXPECT_THAT(with("\"cores\": 4", "\"cores\": \"many\""), HasSubstr("lacks a member"));
  EXPECT_THAT(with("\"cores\": 4", "\"cores\": 0"), HasSubstr("on 0 cores; expected 1 to 4096"));
  EXPECT_THAT(with("\"cores\": 4", "\"cores\": 5000"), HasSubstr("on 5000 cores"));
  EXPECT_THAT(with("12.0", "-12.0"), HasSubstr("a pass of bucket 9 takes -12ms; expected more than 0"));
  EXPECT_THAT(with("0.3", "1e9"), HasSubstr("a deviation of at most 10"));
  EXPECT_THAT(with("\"items\": 10", "\"items\": -1"), HasSubstr("no negative number"));
  EXPECT_THAT(with("\"item_bytes\": 1000", "\"item_bytes\": -1"), HasSubstr("sizes in bytes"));
  EXPECT_THAT(with("\"name\": \"64x64\"", "\"name\": \"9\""), HasSubstr("bucket 9 is there twice"));
}

TEST(MeasurementTest, WhatIsMissingIsSaid) {
  const auto wrong = [](const std::function<void(Measurement&)>& change) {
    Measurement made = Sound();
    change(made);
    return CheckMeasurement(made);
  };
  EXPECT_TRUE(CheckMeasurement(Sound()).ok());
  const absl::Status none = wrong([](Measurement& made) { made.timing.buckets.clear(); });
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("send it some, for example with saccade bench"));
  EXPECT_FALSE(wrong([](Measurement& made) { made.timing.buckets[0].passes.clear(); }).ok());
  EXPECT_FALSE(wrong([](Measurement& made) { made.timing.buckets[1].passes.pop_back(); }).ok());
  EXPECT_FALSE(
      wrong([](Measurement& made) { made.timing.buckets[0].passes[0] = absl::InfiniteDuration(); }).ok());
  EXPECT_FALSE(wrong([](Measurement& made) { made.timing.buckets.resize(5000); }).ok());
  EXPECT_FALSE(wrong([](Measurement& made) { made.timing.instances = 0; }).ok());
  EXPECT_FALSE(wrong([](Measurement& made) { made.decode = absl::Hours(2); }).ok());
}

}  // namespace
}  // namespace saccade::client

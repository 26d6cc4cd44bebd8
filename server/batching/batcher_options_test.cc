#include "server/batching/batcher_options.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string Error(const BatcherOptions& options) {
  const absl::Status sound = CheckOptions(options);
  EXPECT_TRUE(sound.ok() || absl::IsInvalidArgument(sound)) << sound;
  return std::string(sound.message());
}

TEST(BatcherOptionsTest, SizesHaveTheirBounds) {
  EXPECT_EQ(Error({}), "");
  EXPECT_THAT(Error({.max_batch_size = 0}), HasSubstr("max_batch_size is 0; it has to be at least 1"));
  EXPECT_THAT(Error({.max_batch_size = 8, .max_queue_size = 7}),
              HasSubstr("at least max_batch_size, which is 8"));
  EXPECT_EQ(Error({.max_batch_size = 8, .max_queue_size = 8}), "");
  EXPECT_THAT(Error({.max_queue_delay = absl::Milliseconds(-1)}), HasSubstr("max_queue_delay is -1ms"));
  EXPECT_THAT(Error({.threads = 0}), HasSubstr("threads is 0"));
}

TEST(BatcherOptionsTest, ARequestHasTheItemsThatAnEmptyQueueAccepts) {
  BatcherOptions options = {.max_batch_size = 4, .max_queue_size = 30};
  EXPECT_EQ(options.MaxItemsOfRequest(0), 30);
  options.default_policy.max_queue_size = 2;
  EXPECT_EQ(options.MaxItemsOfRequest(0), 8);
  EXPECT_EQ(options.MaxItemsOfRequest(7), 8);
  options.default_policy.max_queue_size = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(options.MaxItemsOfRequest(0), 30);
  options.priority_levels = 2;
  options.default_priority_level = 2;
  options.level_policies[2].max_queue_size = 1;
  EXPECT_EQ(options.MaxItemsOfRequest(0), 4);
  EXPECT_EQ(options.MaxItemsOfRequest(-2), 4) << "levels are negative priorities";
  EXPECT_EQ(options.MaxItemsOfRequest(-1), 30);
}

TEST(BatcherOptionsTest, PrioritiesWithoutLevelsHaveARange) {
  BatcherOptions options;
  EXPECT_EQ(options.ClassOf(7), -7);
  EXPECT_EQ(options.ClassOf(std::numeric_limits<int>::max()), -100);
  EXPECT_EQ(options.ClassOf(-std::numeric_limits<int>::max()), 100);
  options.priority_levels = 1000;
  options.default_priority_level = 3;
  EXPECT_EQ(options.ClassOf(-1000), 1000);
  EXPECT_EQ(options.ClassOf(0), 3);
}

TEST(BatcherOptionsTest, UrgencyHasTheOrderOfClasses) {
  BatcherOptions options;
  EXPECT_GT(options.UrgencyOf(1), options.UrgencyOf(0));
  EXPECT_EQ(options.UrgencyOf(-101), options.UrgencyOf(-std::numeric_limits<int>::max()));
  // A request without a level has the default one, which is behind the first.
  options.priority_levels = 2;
  options.default_priority_level = 2;
  EXPECT_GT(options.UrgencyOf(-1), options.UrgencyOf(0));
  EXPECT_EQ(options.UrgencyOf(-2), options.UrgencyOf(0));
}

TEST(BatcherOptionsTest, AWeightIsAPositiveNumber) {
  EXPECT_EQ(Error({.weight = 1e6}), "");
  for (const double weight : {0.0, -1.0, 2e6, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(Error({.weight = weight}), HasSubstr("it has to be positive, and at most 1000000")) << weight;
}

TEST(BatcherOptionsTest, PreferredSizesAscendWithinTheBatch) {
  EXPECT_EQ(Error({.max_batch_size = 8, .preferred_batch_sizes = {1, 4, 8}}), "");
  EXPECT_THAT(Error({.max_batch_size = 8, .preferred_batch_sizes = {4, 4}}),
              HasSubstr("holds 4; expected ascending"));
  EXPECT_THAT(Error({.max_batch_size = 8, .preferred_batch_sizes = {0}}), HasSubstr("holds 0"));
  EXPECT_THAT(Error({.max_batch_size = 8, .preferred_batch_sizes = {4, 9}}),
              HasSubstr("max_batch_size, which is 8"));
}

TEST(BatcherOptionsTest, ATimeoutIsLongerThanWhatIsWaitedForCompany) {
  EXPECT_EQ(Error({.default_policy = {.timeout = absl::Milliseconds(1)}}), "");
  EXPECT_THAT(Error({.default_policy = {.timeout = absl::ZeroDuration()}}),
              HasSubstr("timeout is 0; it has to be positive"));
  const absl::Duration delay = absl::Milliseconds(5);
  EXPECT_EQ(Error({.max_queue_delay = delay, .default_policy = {.timeout = absl::Milliseconds(6)}}), "");
  EXPECT_THAT(Error({.max_queue_delay = delay, .default_policy = {.timeout = delay}}),
              HasSubstr("timeout is 5ms; expected more than max_queue_delay"));
  EXPECT_THAT(Error({.default_policy = {.max_queue_size = -1}}),
              HasSubstr("max_queue_size of a queue policy is -1"));
}

TEST(BatcherOptionsTest, LevelsAreAmongThoseThatThereAre) {
  EXPECT_EQ(Error({.priority_levels = 3, .default_priority_level = 3}), "");
  EXPECT_THAT(Error({.priority_levels = -1}), HasSubstr("priority_levels is -1"));
  for (const int level : {0, 4})
    EXPECT_THAT(Error({.priority_levels = 3, .default_priority_level = level}), HasSubstr("expected 1 to 3"));
  BatcherOptions options{.priority_levels = 2, .default_priority_level = 1};
  options.level_policies[2] = {};
  EXPECT_EQ(Error(options), "");
  options.level_policies[2].max_queue_size = -7;
  EXPECT_THAT(Error(options), HasSubstr("max_queue_size of a queue policy is -7"));
  for (const int level : {0, 3}) {
    options.level_policies = {{level, {}}};
    EXPECT_THAT(Error(options), HasSubstr("is given for priority level " + std::to_string(level)));
  }
}

}  // namespace
}  // namespace saccade::server

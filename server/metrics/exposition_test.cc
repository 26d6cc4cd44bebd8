#include "server/metrics/exposition.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// Metrics of every kind, with values and labels that are hard to write.
class ExpositionTest : public testing::Test {
 protected:
  ExpositionTest() {
    auto& total =
        prometheus::BuildCounter().Name("asked_total").Help("Asked \"them\\us\".").Register(registry_);
    total.Add({{"model", "a \"b\"\\\n"}, {"code", ""}}).Increment(1e15);
    total.Add({}).Increment(123456.789);
    prometheus::BuildCounter().Name("old_count").Help("Under an old name.").Register(registry_).Add({});
    auto& gauges = prometheus::BuildGauge().Name("held_bytes").Help("Held.").Register(registry_);
    int number = 0;
    for (const double value :
         {0.0, -0.0, 1.0, -7.0, 0.1, 1.0 / 3, 1e-5, 2.5e-300, 1e22, 9007199254740993.0, 268435456.0,
          123456789012345680.0, std::nan(""), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::max()}) {
      gauges.Add({{"n", std::to_string(number++)}}).Set(value);
    }
    prometheus::BuildGauge().Name("unused").Help("Nothing has it.").Register(registry_);
    auto& seconds = prometheus::BuildHistogram().Name("took_seconds").Help("Took.").Register(registry_);
    auto& histogram =
        seconds.Add({{"model", "m"}}, prometheus::Histogram::BucketBoundaries{0.0001, 0.00025, 0.5, 1, 60});
    for (const double value : {0.0002, 0.5, 0.7, 61.25}) histogram.Observe(value);
    seconds.Add({}, prometheus::Histogram::BucketBoundaries{});
  }

  Scraped Scrape() const { return {.families = registry_.Collect()}; }

  prometheus::Registry registry_;
};

TEST_F(ExpositionTest, TextIsWhatPrometheusCppWrites) {
  EXPECT_EQ(Render(Scrape(), ExpositionFormat::kText),
            prometheus::TextSerializer().Serialize(registry_.Collect()));
}

TEST_F(ExpositionTest, OpenMetricsHasTheSameSamples) {
  const std::string text = Render(Scrape(), ExpositionFormat::kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("# TYPE asked counter\n# HELP asked Asked \\\"them\\\\us\\\".\n"));
  EXPECT_THAT(text, HasSubstr("asked_total{code=\"\",model=\"a \\\"b\\\"\\\\\\n\"} 1000000000000000\n"));
  // As a counter it would have to be called old_count_total.
  EXPECT_THAT(text,
              HasSubstr("# TYPE old_count unknown\n# HELP old_count Under an old name.\nold_count 0\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE held_bytes gauge\n# UNIT held_bytes bytes\n"));
  EXPECT_THAT(text, HasSubstr("held_bytes{n=\"12\"} NaN\n"));
  EXPECT_THAT(
      text,
      HasSubstr("# TYPE took_seconds histogram\n# UNIT took_seconds seconds\n# HELP took_seconds Took.\n"));
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{model=\"m\",le=\"0.0001\"} 0\n"
                              "took_seconds_bucket{model=\"m\",le=\"0.00025\"} 1\n"
                              "took_seconds_bucket{model=\"m\",le=\"0.5\"} 2\n"
                              "took_seconds_bucket{model=\"m\",le=\"1\"} 3\n"
                              "took_seconds_bucket{model=\"m\",le=\"60\"} 3\n"
                              "took_seconds_bucket{model=\"m\",le=\"+Inf\"} 4\n"
                              "took_seconds_count{model=\"m\"} 4\n"
                              "took_seconds_sum{model=\"m\"} 62.4502\n"));
  EXPECT_THAT(text, testing::EndsWith("\n# EOF\n"));
}

TEST_F(ExpositionTest, ExemplarsStandBehindTheirBuckets) {
  Exemplars exemplars({0.0001, 0.00025, 0.5, 1, 60});
  exemplars.Keep({{{0xaf7651916cd43dd, 0x8448eb211c80319c}, 0xb7ad6b7169203331},
                  0.5,
                  absl::FromUnixMillis(1'700'000'000'042)});
  exemplars.Keep({{{1, 2}, 3}, 61.25, absl::FromUnixSeconds(1'700'000'000)});
  Scraped scraped = Scrape();
  scraped.exemplars["took_seconds"][{{"model", "m"}}] = exemplars.Latest();
  const std::string text = Render(scraped, ExpositionFormat::kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("le=\"0.5\"} 2 # {trace_id=\"0af7651916cd43dd8448eb211c80319c\","
                              "span_id=\"b7ad6b7169203331\"} 0.5 1700000000.042\n"));
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{model=\"m\",le=\"+Inf\"} 4 # {trace_id="
                              "\"00000000000000010000000000000002\",span_id=\"0000000000000003\"} 61.25 "
                              "1700000000.000\n"));
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{model=\"m\",le=\"1\"} 3\n"));
  // The text format does not support exemplars.
  EXPECT_EQ(Render(scraped, ExpositionFormat::kText), Render(Scrape(), ExpositionFormat::kText));
}

TEST(ExemplarsTest, TheLatestOfEachBucketIsKept) {
  Exemplars exemplars({1, 2});
  const absl::Time at = absl::FromUnixSeconds(100);
  EXPECT_EQ(exemplars.Latest(), BucketExemplars(3));
  exemplars.Keep({{{1, 1}, 1}, 1, at});
  exemplars.Keep({{{2, 2}, 2}, 1.5, at});
  exemplars.Keep({{{3, 3}, 3}, 1.75, at + absl::Milliseconds(1)});
  // A thread that is late.
  exemplars.Keep({{{4, 4}, 4}, 1.25, at});
  const BucketExemplars latest = exemplars.Latest();
  ASSERT_EQ(latest.size(), 3U);
  EXPECT_EQ(latest[0]->span.id, 1U);
  EXPECT_EQ(latest[1]->span.id, 3U);
  EXPECT_FALSE(latest[2].has_value());
}

TEST(ExemplarsTest, TheyGoWithTheLastWhoHasThem) {
  ExemplarPool pool({1, 2});
  auto one = pool.Get({{"model", "m"}});
  const auto same = pool.Get({{"model", "m"}});
  one->Keep({{{1, 1}, 1}, 1, absl::UnixEpoch()});
  one.reset();
  EXPECT_TRUE(pool.Latest().at({{"model", "m"}})[0].has_value());
  EXPECT_EQ(pool.Get({{"model", "n"}})->Latest(), BucketExemplars(3));
  EXPECT_EQ(pool.Latest().size(), 1U);
}

}  // namespace
}  // namespace saccade::server

#include "server/metrics/exposition_format.h"

#include <utility>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

constexpr ExpositionFormat kText = ExpositionFormat::kText;
constexpr ExpositionFormat kOpenMetrics = ExpositionFormat::kOpenMetrics;

TEST(ExpositionFormatTest, TextUnlessSomebodyWantsOpenMetrics) {
  EXPECT_EQ(AcceptedFormat(std::nullopt), kText);
  const std::pair<const char*, ExpositionFormat> cases[] = {
      {"", kText},
      {"*/*", kText},
      {"application/*", kText},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8", kText},
      {"text/plain", kText},
      {"application/openmetrics-text", kOpenMetrics},
      {"APPLICATION/OpenMetrics-Text; Version=1.0.0; charset=utf-8", kOpenMetrics},
      {"application/openmetrics-text;version=\"1.0.0\"", kOpenMetrics},
      // Unsupported versions.
      {"application/openmetrics-text;version=0.0.1", kText},
      {"application/openmetrics-text;version=2.0.0", kText},
      // Prometheus 2.
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpenMetrics},
      // Prometheus 3.
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
       "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       kOpenMetrics},
      // The same with scrape_protocols that prefer text.
      {"text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1", kText},
      {"application/openmetrics-text; version=1.0.0; q=0.5, text/plain; q=0.7", kText},
      {"text/plain;q=0.7 , application/openmetrics-text;q=0.9", kOpenMetrics},
      {"application/openmetrics-text;q=0.5,text/*;q=0.7", kText},
      {"application/openmetrics-text;q=0.5,text/plain;q=0.2,text/*;q=0.7", kOpenMetrics},
      {"application/openmetrics-text;q=0.5,*/*", kText},
      {"application/openmetrics-text;q=0", kText},
      {"application/openmetrics-text;q=high", kText},
      {"application/openmetrics-text;q=nan", kText},
      {"application/openmetrics-text;q=7", kText},
      {",;,;;q,;=,application/openmetrics-text;;q=1;version=1.0.0", kOpenMetrics},
  };
  for (const auto& [accept, expected] : cases) EXPECT_EQ(AcceptedFormat(accept), expected) << accept;
}

}  // namespace
}  // namespace saccade::server

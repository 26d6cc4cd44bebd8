// In which of the formats that Prometheus reads a scraper wants the metrics.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace saccade::server {

enum class ExpositionFormat { kText, kOpenMetrics };

// Of an Accept header, if there is one: OpenMetrics for who names it in its version 1.0.0, or in no version,
// and likes it at least as well as text; text for everybody else.
ExpositionFormat AcceptedFormat(std::optional<absl::string_view> accept);

absl::string_view ContentTypeOf(ExpositionFormat format);

}  // namespace saccade::server

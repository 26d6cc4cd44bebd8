// Content negotiation between the exposition formats that Prometheus reads.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace saccade::server {

enum class ExpositionFormat { kText, kOpenMetrics };

// Chooses the format for an Accept header, if there is one: OpenMetrics if the header lists it with version
// 1.0.0 or without version, and weights it at least as high as text; otherwise text.
ExpositionFormat AcceptedFormat(std::optional<absl::string_view> accept);

absl::string_view ContentTypeOf(ExpositionFormat format);

}  // namespace saccade::server

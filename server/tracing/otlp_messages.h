// Converts spans to OTLP's ExportTraceServiceRequest, and parses the collector's response.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tracing/span.h"

namespace saccade::server {

// Attributes of the process, "service.name" and so on.
using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// The serialised ExportTraceServiceRequest. Texts are cut to 1 KiB, and invalid UTF-8 is replaced, so that
// one client's bytes cannot make a collector reject other spans.
std::string ToOtlp(const std::vector<Span>& spans, const ResourceAttributes& resource,
                   std::string_view version);

struct OtlpAnswer {
  int64_t rejected = 0;
  std::string why;
};

// Parses a serialised ExportTraceServiceResponse. If `body` is not one, nothing was rejected.
OtlpAnswer ReadOtlpAnswer(const std::string& body);

}  // namespace saccade::server

// Spans as OTLP has them: an ExportTraceServiceRequest, and what a collector answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tracing/span.h"

namespace saccade::server {

// Whose spans they are: "service.name" and so on.
using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// The serialised ExportTraceServiceRequest. Texts are cut to 1 KiB, and what of them is not UTF-8 is
// replaced: one client's bytes must not make a collector refuse the others' spans.
std::string ToOtlp(const std::vector<Span>& spans, const ResourceAttributes& resource,
                   std::string_view version);

struct OtlpAnswer {
  int64_t rejected = 0;
  std::string why;
};

// Of a serialised ExportTraceServiceResponse; what is none says that nothing was rejected.
OtlpAnswer ReadOtlpAnswer(const std::string& body);

}  // namespace saccade::server

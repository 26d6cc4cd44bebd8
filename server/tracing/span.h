// A span as it is told to others: an operation with a beginning, an end, and a place in a trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "server/tracing/trace_context.h"

namespace saccade::server {

struct Attribute {
  // One of attribute_names.h.
  std::string_view name;
  std::variant<std::string, int64_t> value;
};

struct SpanLink {
  TraceId trace = {};
  SpanId span = 0;
};

struct Span {
  static constexpr size_t kMostLinks = 128;

  enum class Kind { kInternal, kServer };

  TraceId trace = {};
  SpanId id = 0;
  SpanId parent = 0;
  bool parent_is_remote = false;
  std::string state = {};
  std::string name = {};
  Kind kind = Kind::kInternal;
  absl::Time started = {};
  absl::Time ended = {};
  std::vector<Attribute> attributes = {};
  // Up to kMostLinks of them, and how many more there would be.
  std::vector<SpanLink> links = {};
  uint32_t links_left_out = 0;
  bool failed = false;
  // Of a failure.
  std::string message = {};
};

}  // namespace saccade::server

// A span as it is exported: an operation with a beginning, an end, and a place in a trace.
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
  // One of the names in attribute_names.h.
  std::string_view name;
  std::variant<std::string, int64_t> value;
};

struct SpanLink {
  TraceId trace = {};
  SpanId span = 0;
};

struct Span {
  static constexpr size_t kMaxLinks = 128;

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
  // At most kMaxLinks links, and the number of further ones.
  std::vector<SpanLink> links = {};
  uint32_t links_left_out = 0;
  bool failed = false;
  // Describes the failure.
  std::string message = {};
};

}  // namespace saccade::server

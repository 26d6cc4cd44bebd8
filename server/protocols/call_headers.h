// Headers, or gRPC metadata, that identify a call.
#pragma once

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/http/http_headers.h"

namespace saccade::server {

inline constexpr char kTraceparent[] = "traceparent";
inline constexpr char kTracestate[] = "tracestate";
inline constexpr char kRequestId[] = "x-request-id";

// Usually one value or none.
using HeaderValues = absl::InlinedVector<absl::string_view, 2>;

// gRPC's metadata have the same type.
inline HeaderValues ValuesOf(const HttpHeaders& headers, absl::string_view name) {
  HeaderValues values;
  for (const auto& [header, value] : headers) {
    if (absl::EqualsIgnoreCase(header, name)) values.emplace_back(value);
  }
  return values;
}

inline std::string FirstOf(const HeaderValues& values) {
  return values.empty() ? "" : std::string(values[0]);
}

}  // namespace saccade::server

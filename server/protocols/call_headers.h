// Headers, or gRPC metadata, that identify a call.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace saccade::server {

inline constexpr char kTraceparent[] = "traceparent";
inline constexpr char kTracestate[] = "tracestate";
inline constexpr char kRequestId[] = "x-request-id";

// Usually one value or none.
using HeaderValues = absl::InlinedVector<absl::string_view, 2>;

inline HeaderValues ValuesOf(const grpc::CallbackServerContext& context, const char* name) {
  HeaderValues values;
  const auto [begin, end] = context.client_metadata().equal_range(name);
  for (auto entry = begin; entry != end; ++entry)
    values.emplace_back(entry->second.data(), entry->second.size());
  return values;
}

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

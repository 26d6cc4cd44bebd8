#include "server/lifecycle/grpc_flags.h"

#include <CLI/CLI.hpp>

#include <limits>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

struct GrpcFlag {
  const char* name;
  absl::Duration HttpLimits::* value;
  int min;
  const char* help;
};

constexpr GrpcFlag kGrpcFlags[] = {
    {"grpc-keepalive-time", &HttpLimits::keepalive_time, 1,
     "How long a connection may be silent before the server sends a keepalive ping"},
    {"grpc-keepalive-timeout", &HttpLimits::keepalive_timeout, 1,
     "How long the client may take to answer the ping before the connection is closed"},
    {"grpc-max-connection-age", &HttpLimits::max_connection_age, 1,
     "Maximum age of a connection; an older one accepts no more calls, so that its client reconnects"},
    {"grpc-max-connection-age-grace", &HttpLimits::max_connection_age_grace, 0,
     "How long the calls of such a connection may then take before it is closed"},
};

}  // namespace

void AddGrpcFlags(CLI::App& app, HttpLimits* limits) {
  for (const GrpcFlag& flag : kGrpcFlags) {
    absl::Duration& value = limits->*flag.value;
    app.add_option_function<int>(
           absl::StrCat("--", flag.name),
           [&value](const int& milliseconds) { value = absl::Milliseconds(milliseconds); }, flag.help)
        ->check(CLI::Range(flag.min, std::numeric_limits<int>::max()).description(""))
        ->default_str(value == absl::InfiniteDuration() ? "none"
                                                        : absl::StrCat(absl::ToInt64Milliseconds(value)))
        ->type_name("MS");
  }
  app.add_option("--grpc-keepalive-permit-without-calls", limits->keepalive_without_calls,
                 "Also send keepalive pings on connections without calls")
      ->default_str("false")
      ->type_name("true|false");
}

}  // namespace saccade::server

#include "server/lifecycle/grpc_flags.h"

#include <grpc/grpc.h>
#include <CLI/CLI.hpp>

#include <limits>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

struct GrpcFlag {
  const char* name;
  const char* argument;
  int min;
  const char* type;
  const char* shown_default;
  const char* help;
};

constexpr GrpcFlag kGrpcFlags[] = {
    {"grpc-keepalive-time", GRPC_ARG_KEEPALIVE_TIME_MS, 1, "MS", "60000",
     "How long a connection may be idle before the server sends a keepalive ping"},
    {"grpc-keepalive-timeout", GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 1, "MS", "20000",
     "How long the client may take to answer the ping before the connection is closed"},
    {"grpc-http2-max-pings-without-data", GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0, "N", "2",
     "Maximum pings that the server sends without data in between; 0 means no limit"},
    {"grpc-http2-min-recv-ping-interval-without-data", GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
     0, "MS", "10000",
     "Minimum interval between a client's pings without data in between; more frequent ones are ping "
     "strikes"},
    {"grpc-http2-max-ping-strikes", GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0, "N", "2",
     "Maximum ping strikes before the connection is closed; 0 means no limit"},
    {"grpc-max-connection-age", GRPC_ARG_MAX_CONNECTION_AGE_MS, 1, "MS", "none",
     "Maximum age of a connection; an older one accepts no more calls, so that its client reconnects"},
    {"grpc-max-connection-age-grace", GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 0, "MS", "none",
     "How long the calls of such a connection may then take before it is closed"},
};

}  // namespace

void AddGrpcFlags(CLI::App& app, std::map<std::string, int>* arguments) {
  for (const GrpcFlag& flag : kGrpcFlags) {
    const auto take = [&flag, arguments](const int& value) { (*arguments)[flag.argument] = value; };
    app.add_option_function<int>(absl::StrCat("--", flag.name), take, flag.help)
        ->check(CLI::Range(flag.min, std::numeric_limits<int>::max()).description(""))
        ->default_str(flag.shown_default)
        ->type_name(flag.type);
  }
  const auto take = [arguments](const bool& value) {
    (*arguments)[GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS] = value ? 1 : 0;
  };
  app.add_option_function<bool>("--grpc-keepalive-permit-without-calls", take,
                                "Also send keepalive pings on connections without calls")
      ->default_str("false")
      ->type_name("true|false");
}

}  // namespace saccade::server

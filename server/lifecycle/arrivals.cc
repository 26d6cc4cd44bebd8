#include "server/lifecycle/arrivals.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace saccade::server {
namespace {

constexpr absl::string_view kHealthChecks[] = {
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/inference.GRPCInferenceService/ServerLive",
    "/inference.GRPCInferenceService/ServerReady",
    "/v2/health/live",
    "/v2/health/ready",
};

std::string IdentityOf(const Tokens& tokens, const RequestHead& head) {
  std::vector<absl::string_view> authorizations;
  for (const auto& [name, value] : head.headers) {
    if (name == "authorization") authorizations.push_back(value);
  }
  return tokens.IdentityOf(authorizations);
}

}  // namespace

ArrivalCheck CheckArrivals(const Tokens* tokens, CountRequest count) {
  return [tokens, count = std::move(count)](const RequestHead& head,
                                            const Peer& peer) -> absl::StatusOr<Caller> {
    Caller caller = CallerAt(peer);
    if (tokens != nullptr) {
      std::string identity = IdentityOf(*tokens, head);
      if (!identity.empty()) caller.client = std::move(identity);
    }
    const bool is_health_check =
        std::find(std::begin(kHealthChecks), std::end(kHealthChecks), head.path) != std::end(kHealthChecks);
    if (count == nullptr || is_health_check) return caller;
    if (absl::Status counted = count(caller.client); !counted.ok()) return counted;
    return caller;
  };
}

}  // namespace saccade::server

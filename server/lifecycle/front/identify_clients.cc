#include "server/lifecycle/front/identify_clients.h"

#include <string>
#include <utility>
#include <vector>

#include "server/lifecycle/front/health_reserve.h"

namespace saccade::server {
namespace {

std::string IdentityOf(const Tokens& tokens, const RequestHead& head) {
  std::vector<absl::string_view> authorizations;
  for (const auto& [name, value] : head.headers) {
    if (name == "authorization") authorizations.push_back(value);
  }
  return tokens.IdentityOf(authorizations);
}

}  // namespace

ArrivalCheck IdentifyClients(const Tokens* tokens, CountRequest count) {
  return [tokens, count = std::move(count)](const RequestHead& head,
                                            const Peer& peer) -> absl::StatusOr<Caller> {
    Caller caller = CallerAt(peer);
    if (tokens != nullptr) {
      std::string identity = IdentityOf(*tokens, head);
      if (!identity.empty()) caller.client = std::move(identity);
    }
    if (count == nullptr || HealthCallOf(head.path) != HealthCall::kNone) return caller;
    if (absl::Status counted = count(caller.client); !counted.ok()) return counted;
    return caller;
  };
}

}  // namespace saccade::server

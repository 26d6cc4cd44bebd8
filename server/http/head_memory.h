// Memory that a request takes from its head to its end, charged to the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/byte_ledger.h"
#include "server/http/exchange.h"
#include "server/net/refusal.h"

namespace saccade::server {

// What every open request takes beside its head: its stream, its exchange and its call. 3.3 KB were measured
// for a call of Health/Watch.
inline constexpr int64_t kOpenRequestBytes = 4 << 10;
// Larger answers are charged separately.
inline constexpr size_t kUnchargedAnswerBytes = 1 << 10;
// What a field takes beside its name and value.
inline constexpr int64_t kFieldBytes = 64;

// The head is held twice while the request is open: by the exchange, and as metadata or headers of the call.
inline int64_t HeadMemory(const RequestHead& head) {
  size_t bytes = head.method.size() + head.path.size() + head.query.size() + head.authority.size();
  for (const auto& [name, value] : head.headers) bytes += name.size() + value.size() + kFieldBytes;
  return kOpenRequestBytes + 2 * static_cast<int64_t>(bytes);
}

// What an open request holds, or why it is refused.
struct RequestCharge {
  // The errors are those of ByteLedger::Charge().
  absl::StatusOr<ByteCharge> memory = ByteCharge();
  // What an error counts as.
  Refusal reason = Refusal::kBytes;
  // How long a request may hold the charge while it waits for its client: to read the end of the answer, and
  // over gRPC, to send the rest of the call.
  absl::Duration max_client_wait = absl::InfiniteDuration();
};

// Charges an open request to a ledger, which may depend on what is asked for. `client` as in
// ByteLedger::Charge(). Thread-safe.
using ChargeRequest =
    std::function<RequestCharge(absl::string_view client, const RequestHead& head, int64_t bytes)>;

// Charges all requests to `ledger`, which must outlive the function and the charges.
inline ChargeRequest ChargeTo(ByteLedger* ledger) {
  return [ledger](absl::string_view client, const RequestHead& /*head*/, int64_t bytes) {
    return RequestCharge{ledger->Charge(client, bytes)};
  };
}

// Charges a head, and `more` bytes that the request will take. A null `charge` charges nothing.
inline RequestCharge ChargeHead(const ChargeRequest& charge, absl::string_view client,
                                const RequestHead& head, int64_t more = 0) {
  if (charge == nullptr) return {};
  return charge(client, head, HeadMemory(head) + more);
}

}  // namespace saccade::server

// The part of a call that does not depend on its input: model, client, deadline, priority, cancellation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/core/cancellation.h"

namespace saccade::server {

// Defined in server/tracing/call_record.h.
class CallRecord;
// Defined in server/core/served_by.h.
struct ServedBy;

// The largest priority, and negated the smallest, for models without priority levels.
inline constexpr int kMaxPriority = 100;

struct CallHead {
  std::string model;
  // 0 selects the highest version that is ready.
  int64_t version = 0;
  // Key of the client for its limits (server/http/caller.h).
  std::string client;
  std::string id;
  // Higher values are scheduled first. For a model with priority levels, level n is -n and 0 is the default
  // level.
  int priority = 0;
  absl::Time arrival;
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline = absl::InfiniteFuture();
  // Maximum time from `arrival` to the start of the forward pass. Used only if the model allows requests to
  // override its queue timeout.
  absl::Duration timeout = absl::InfiniteDuration();
  std::shared_ptr<Cancellation> cancellation;
  // Bytes of the request's input that the network front has charged to the server (ByteLedger) and holds as
  // long as the input. Admission does not charge them to the server again.
  int64_t charged_bytes = 0;
  // True for a step of an ensemble. Admission has already admitted the ensemble's request as a whole.
  bool nested = false;
  // Label for the metrics, e.g. "grpc", "oip".
  std::string_view protocol;
  // Collects the events of the call for tracing and the access log; null if the call is neither sampled nor
  // logged.
  std::shared_ptr<CallRecord> record = nullptr;
  // Where to write which model computes the call; null if nobody captures calls.
  std::shared_ptr<ServedBy> served = nullptr;
};

}  // namespace saccade::server

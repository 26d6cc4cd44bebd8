// What every call has, whatever it brings: who asks what of whom, and until when.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/core/cancellation.h"

namespace saccade::server {

// server/tracing/call_record.h
class CallRecord;

struct CallHead {
  std::string model;
  // 0 is the highest version that is ready.
  int64_t version = 0;
  // Who sends it, as far as the rate of each client is concerned: an address without its port, say.
  std::string client;
  std::string id;
  // Higher first; of a model with priority levels, level n is -n, and 0 its default.
  int priority = 0;
  absl::Time arrival;
  // absl::InfiniteFuture() if the client set none.
  absl::Time deadline = absl::InfiniteFuture();
  // How long after its arrival it may wait for a forward pass, where its model lets requests say so.
  absl::Duration timeout = absl::InfiniteDuration();
  std::shared_ptr<Cancellation> cancellation;
  // A step of an ensemble, whose request was admitted as a whole.
  bool nested = false;
  // For metrics alone: "grpc", "oip".
  std::string_view protocol;
  // Where what happens to it is written down; null if nobody wants to know.
  std::shared_ptr<CallRecord> record = nullptr;
};

}  // namespace saccade::server

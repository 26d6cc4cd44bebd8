// grpc.health.v1.Health: Check, List and Watch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/grpc/call.h"

namespace saccade::server {

// Thread-safe.
class Health {
 public:
  Health();
  ~Health();

  // Publishes the state of a service, or of a model by its name; "" is the whole daemon. No function blocks.
  void Set(absl::string_view service, bool serving);
  // Forgets a service: Check answers NOT_FOUND again, and watches are told SERVICE_UNKNOWN.
  void Remove(absl::string_view service);

  // This object must outlive the calls.
  std::vector<CallMethod> Methods();

  // Ends all watches with UNAVAILABLE, and every later one: they would never end by themselves. Open watches
  // count as open requests of their connections.
  void EndWatches();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace saccade::server

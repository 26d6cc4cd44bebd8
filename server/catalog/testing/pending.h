// Waits for the status that a callback of the catalog is called with.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"

namespace saccade::server {

// A load, an unload, or a request that waits for its model. Must outlive the call of End()'s result.
struct Pending {
  absl::Notification ended;
  // Written before `ended` is notified.
  absl::Status status;

  // The callback. It is called once.
  auto End() {
    return [this](absl::Status end) {
      status = std::move(end);
      ended.Notify();
    };
  }
  const absl::Status& Await() {
    ended.WaitForNotification();
    return status;
  }
};

}  // namespace saccade::server

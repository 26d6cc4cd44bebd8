// Receives the items that are made from a request's input or, at load, from a model's samples.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/core/request.h"
#include "server/engine/item.h"

namespace saccade::server {

// Not thread-safe.
class ItemSink {
 public:
  virtual const Request& request() const = 0;
  // Traits of all the request's items together, without a bucket.
  virtual BatchTask::Traits traits() const = 0;
  // Charges for memory of the items or of what they are made from, before it is allocated. RESOURCE_EXHAUSTED
  // if there is no room for it.
  virtual absl::Status AddDecodedBytes(int64_t bytes) = 0;
  // Asks whether an item that belongs in one of `buckets` would be accepted, before work is spent on it.
  virtual absl::Status Consider(absl::Span<const int64_t> buckets) const = 0;
  // The most items that the request may have, added ones included: those that the queue of its model accepts
  // when it is empty.
  virtual int64_t max_items() const = 0;
  // The number of items that were added.
  virtual int64_t item_count() const = 0;
  // Adds an item, in the request's order.
  virtual void AddItem(Item item) = 0;
  // Called once per item in the same order, except for tensors.
  virtual void AddSent(const SentItem& sent) = 0;

 protected:
  ~ItemSink() = default;
};

}  // namespace saccade::server

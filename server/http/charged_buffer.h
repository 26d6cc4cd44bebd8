// A buffer whose memory is charged to a ledger before it is allocated.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// Not thread-safe; may be moved on between threads.
class ChargedBuffer {
 public:
  // `ledger` must outlive the buffer; null: not charged. `client` as in ByteLedger.
  ChargedBuffer(ByteLedger* ledger, std::string client) : ledger_(ledger), client_(std::move(client)) {}

  // Makes the capacity `capacity`, if it is smaller. Untouched memory is charged, but the system has not
  // provided it. The errors are ByteLedger::Charge()'s, and RESOURCE_EXHAUSTED if the allocation fails; then
  // the buffer is unchanged.
  absl::Status Reserve(size_t capacity);
  // REQUIRES: the capacity suffices.
  void Append(absl::string_view bytes);
  // Frees the memory, and gives back what was charged.
  void Clear();

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  absl::string_view bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };

  ByteLedger* ledger_;
  std::string client_;
  std::vector<ByteCharge> charges_;
  std::unique_ptr<char[], Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace saccade::server

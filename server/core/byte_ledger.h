// The daemon's account of memory that clients' messages take.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

class ByteLedger;

// Bytes charged to a client; the destructor gives them back. May be moved between threads, and destroyed on
// any. The ledger must outlive it.
class ByteCharge {
 public:
  ByteCharge() = default;
  ByteCharge(ByteCharge&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        client_(std::move(other.client_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  ByteCharge& operator=(ByteCharge&& other) noexcept {
    Release();
    ledger_ = std::exchange(other.ledger_, nullptr);
    client_ = std::move(other.client_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~ByteCharge() { Release(); }

  int64_t bytes() const { return bytes_; }
  void Release();

 private:
  friend class ByteLedger;
  ByteCharge(ByteLedger* ledger, absl::string_view client, int64_t bytes)
      : ledger_(ledger), client_(client), bytes_(bytes) {}

  ByteLedger* ledger_ = nullptr;
  std::string client_;
  int64_t bytes_ = 0;
};

// Implemented by Admission. Thread-safe.
class ByteLedger {
 public:
  virtual ~ByteLedger() = default;

  // Charges memory before it is allocated. Never blocks. RESOURCE_EXHAUSTED, with the reason and when to try
  // again, if the server's bound, or the part of it that one client may use, is reached; INVALID_ARGUMENT if
  // `bytes` alone exceed the bound. `client` as in CallStart.
  virtual absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) = 0;

 protected:
  static ByteCharge Issue(ByteLedger* ledger, absl::string_view client, int64_t bytes) {
    return ByteCharge(ledger, client, bytes);
  }

 private:
  friend class ByteCharge;
  virtual void Return(absl::string_view client, int64_t bytes) = 0;
};

inline void ByteCharge::Release() {
  if (ledger_ != nullptr) ledger_->Return(client_, bytes_);
  ledger_ = nullptr;
  bytes_ = 0;
}

}  // namespace saccade::server

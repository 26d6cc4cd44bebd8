// Checks the decisions of a ledger by an account of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_ledger.h"

namespace saccade::server::simulation {

// Passes charges on to `ledger`, which must grant exactly those that fit. Not thread-safe.
class CheckedLedger final : public ByteLedger {
 public:
  struct Bounds {
    // What all clients may hold together, and one of them.
    int64_t bytes = 0;
    int64_t client_bytes = 0;
  };
  // `violate` is called with a description of each wrong decision. `ledger` must outlive this object, and
  // all charges must have been released before its end.
  CheckedLedger(ByteLedger* ledger, const Bounds& bounds, std::function<void(std::string)> violate)
      : ledger_(ledger), bounds_(bounds), violate_(std::move(violate)) {}

  absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) override;

  // Bytes of the charges that were granted and not returned.
  int64_t held() const { return held_; }
  // Number of charges of at most `max_bytes` that the client was refused.
  int refusals(const std::string& client, int64_t max_bytes) const;

 private:
  void Return(absl::string_view client, int64_t bytes) override;

  ByteLedger* const ledger_;
  const Bounds bounds_;
  const std::function<void(std::string)> violate_;
  int64_t held_ = 0;
  std::map<std::string, int64_t> held_by_client_;
  // The charges that `ledger_` has granted, by client and bytes.
  std::multimap<std::pair<std::string, int64_t>, ByteCharge> charges_;
  // The bytes of each charge that a client was refused.
  std::map<std::string, std::vector<int64_t>> refused_;
};

}  // namespace saccade::server::simulation

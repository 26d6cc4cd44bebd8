#include "server/simulation/front/checked_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::server::simulation {

absl::StatusOr<ByteCharge> CheckedLedger::Charge(absl::string_view client, int64_t bytes) {
  const std::string name(client);
  const bool fits = bytes <= bounds_.bytes - held_ && bytes <= bounds_.client_bytes - held_by_client_[name];
  auto charge = ledger_->Charge(client, bytes);
  if (charge.ok() != fits) {
    violate_(absl::StrCat("the ledger ", charge.ok() ? "granted " : "refused ", name, " ", bytes,
                          " bytes: ", held_by_client_[name], " of ", bounds_.client_bytes,
                          " are the client's, ", held_, " of ", bounds_.bytes, " are in use"));
  }
  if (!charge.ok()) {
    refused_[name].push_back(bytes);
    return charge.status();
  }
  held_ += bytes;
  held_by_client_[name] += bytes;
  charges_.emplace(std::pair(name, bytes), *std::move(charge));
  return Issue(this, client, bytes);
}

int CheckedLedger::refusals(const std::string& client, int64_t max_bytes) const {
  const auto found = refused_.find(client);
  if (found == refused_.end()) return 0;
  return static_cast<int>(std::count_if(found->second.begin(), found->second.end(),
                                        [max_bytes](int64_t bytes) { return bytes <= max_bytes; }));
}

void CheckedLedger::Return(absl::string_view client, int64_t bytes) {
  const std::string name(client);
  const auto charge = charges_.find({name, bytes});
  if (charge == charges_.end()) {
    violate_(absl::StrCat(name, " returned ", bytes, " bytes that it was not charged"));
    return;
  }
  charges_.erase(charge);
  held_ -= bytes;
  held_by_client_[name] -= bytes;
}

}  // namespace saccade::server::simulation

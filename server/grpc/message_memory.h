// Memory of a message that a client sends, charged to the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/core/byte_ledger.h"
#include "server/core/retry_hint.h"
#include "server/net/refusal.h"

namespace saccade::server {

// Why a message cannot be read.
struct MessageFailure {
  absl::Status status;
  Refusal refusal;
};

// Where the messages of a call are charged.
struct MessageAccount {
  // Null: nothing is charged.
  ByteLedger* ledger = nullptr;
  std::string client;

  absl::StatusOr<ByteCharge> Charge(size_t bytes) const {
    if (ledger == nullptr) return ByteCharge();
    return ledger->Charge(client, static_cast<int64_t>(bytes));
  }
};

struct MessageMemory {
  // Declared before the bytes, so that they are freed first.
  ByteCharge charge;
  std::unique_ptr<char[]> bytes;

  // Charges, then allocates, without touching the memory.
  std::optional<MessageFailure> Allocate(const MessageAccount& account, size_t size) {
    auto charged = account.Charge(size);
    if (!charged.ok()) return MessageFailure{charged.status(), Refusal::kBytes};
    charge = *std::move(charged);
    bytes.reset(new (std::nothrow) char[size]);
    if (bytes != nullptr) return std::nullopt;
    return MessageFailure{OutOfMemory(absl::StrCat("the server has no memory for ", size,
                                                   " bytes of a message; try again later")),
                          Refusal::kBytes};
  }
};

}  // namespace saccade::server

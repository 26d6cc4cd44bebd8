// Bytes that keep what was charged for them.
#pragma once

#include <memory>
#include <utility>

#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// The same bytes. The charge is returned when their owner is released.
inline BytePieces WithCharge(BytePieces bytes, ByteCharge charge) {
  struct Charged {
    ByteCharge charge;
    BytePieces bytes;
  };
  const auto charged = std::make_shared<const Charged>(Charged{std::move(charge), std::move(bytes)});
  return charged->bytes.KeptBy(charged);
}

}  // namespace saccade::server

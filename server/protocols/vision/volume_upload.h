// The bytes of a volume while they arrive, charged as they come.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/core/byte_ledger.h"

namespace saccade::server {

// The announced size costs nothing: memory grows with what has arrived, from kFirstBytes on by doubling, and
// each step is charged before it is taken. Growing does not copy the bytes. Not thread-safe.
class VolumeUpload {
 public:
  static constexpr size_t kFirstBytes = size_t{1} << 20;

  // `ledger` must outlive the upload.
  VolumeUpload(ByteLedger* ledger, std::string client) : ledger_(ledger), client_(std::move(client)) {}
  ~VolumeUpload() { Release(); }
  VolumeUpload(const VolumeUpload&) = delete;
  VolumeUpload& operator=(const VolumeUpload&) = delete;

  // Sets the size that the client announced.
  void Announce(size_t bytes) { announced_ = bytes; }
  size_t announced() const { return announced_; }

  // INVALID_ARGUMENT if more bytes come than were announced; RESOURCE_EXHAUSTED if the ledger refuses them or
  // there is no memory.
  absl::Status Append(std::string_view data);

  // Valid until Release().
  std::string_view bytes() const { return {memory_, size_}; }

  // Gives the memory and the charges back.
  void Release();

 private:
  absl::Status Grow(size_t capacity);

  ByteLedger* const ledger_;
  const std::string client_;
  size_t announced_ = 0;
  // Mapped, because mappings grow without being copied.
  char* memory_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  // Together they cover `capacity_` bytes.
  std::vector<ByteCharge> charges_;
};

}  // namespace saccade::server

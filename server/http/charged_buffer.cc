#include "server/http/charged_buffer.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"

namespace saccade::server {

absl::Status ChargedBuffer::Reserve(size_t capacity) {
  if (capacity <= capacity_) return absl::OkStatus();
  ByteCharge charge;
  if (ledger_ != nullptr) {
    auto charged = ledger_->Charge(client_, static_cast<int64_t>(capacity - capacity_));
    if (!charged.ok()) return charged.status();
    charge = *std::move(charged);
  }
  void* const data = std::realloc(data_.get(), capacity);
  if (data == nullptr) {
    return OutOfMemory(
        absl::StrCat("the server has no memory for a body of ", capacity, " bytes; try again later"));
  }
  // realloc() has freed the old memory.
  static_cast<void>(data_.release());
  data_.reset(static_cast<char*>(data));
  charges_.push_back(std::move(charge));
  capacity_ = capacity;
  return absl::OkStatus();
}

void ChargedBuffer::Append(absl::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void ChargedBuffer::Clear() {
  data_.reset();
  charges_.clear();
  size_ = 0;
  capacity_ = 0;
}

}  // namespace saccade::server

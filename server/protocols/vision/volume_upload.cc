#include "server/protocols/vision/volume_upload.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {

absl::Status VolumeUpload::Append(std::string_view data) {
  if (data.size() > announced_ - size_) {
    return InvalidField(
        "data", absl::StrCat("there are more than the ", announced_, " bytes that the header announced"));
  }
  if (data.size() > capacity_ - size_) {
    const size_t step = std::max({kFirstBytes, 2 * capacity_, size_ + data.size()});
    if (absl::Status grown = Grow(std::min(step, announced_)); !grown.ok()) return grown;
  }
  if (!data.empty()) std::memcpy(memory_ + size_, data.data(), data.size());
  size_ += data.size();
  return absl::OkStatus();
}

absl::Status VolumeUpload::Grow(size_t capacity) {
  auto charge = ledger_->Charge(client_, static_cast<int64_t>(capacity - capacity_));
  if (!charge.ok()) return charge.status();
  void* const grown =
      memory_ == nullptr ? mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                         : mremap(memory_, capacity_, capacity, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) {
    return absl::ResourceExhaustedError("out of memory for the volume; try again later");
  }
  memory_ = static_cast<char*>(grown);
  capacity_ = capacity;
  charges_.push_back(*std::move(charge));
  return absl::OkStatus();
}

void VolumeUpload::Release() {
  if (memory_ != nullptr) munmap(memory_, capacity_);
  memory_ = nullptr;
  size_ = capacity_ = 0;
  charges_.clear();
}

}  // namespace saccade::server

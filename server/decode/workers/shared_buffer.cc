#include "server/decode/workers/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

constexpr uint64_t kPage = 4096;

absl::Status NoMemory(const char* what) {
  return OutOfMemory(absl::StrCat("no memory can be shared with a decode worker: ", what, ": ",
                                  std::strerror(errno), "; try again later"));
}

uint64_t WholePages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

absl::StatusOr<std::unique_ptr<SharedBuffer>> SharedBuffer::Create() {
  const int descriptor = memfd_create("saccade-decode", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return NoMemory("memfd_create");
  std::unique_ptr<SharedBuffer> buffer(new SharedBuffer(descriptor));
  if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) return NoMemory("F_ADD_SEALS");
  if (absl::Status grown = buffer->Grow(kPage); !grown.ok()) return grown;
  return buffer;
}

SharedBuffer::~SharedBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
  close(descriptor_);
}

absl::Status SharedBuffer::Grow(uint64_t bytes) {
  bytes = WholePages(bytes);
  if (bytes <= mapped_) return absl::OkStatus();
  if (bytes > file_bytes_) {
    if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) return NoMemory("ftruncate");
    file_bytes_ = bytes;
  }
  void* const mapped = data_ == nullptr
                           ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
                           : mremap(data_, mapped_, bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) return NoMemory("mmap");
  data_ = static_cast<uint8_t*>(mapped);
  mapped_ = bytes;
  return absl::OkStatus();
}

void SharedBuffer::Trim(uint64_t bytes) {
  bytes = WholePages(bytes);
  if (bytes >= mapped_) return;
  // Neither can fail: the range is mapped, and the file holds it.
  mremap(data_, mapped_, bytes, 0);
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(bytes),
            static_cast<off_t>(file_bytes_ - bytes));
  mapped_ = bytes;
}

}  // namespace saccade::server

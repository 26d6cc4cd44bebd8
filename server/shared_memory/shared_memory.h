// System shared memory: files of /dev/shm that clients on this machine register by name, put tensors into,
// and take them from.
//
// Nothing is mapped. Bytes are copied by pread and pwrite, because a client may change or cut its file at any
// moment: a copy cannot change after it was checked, and a file that is too short is an error, not a SIGBUS
// (docs/decisions/0022).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"

namespace saccade::server {

struct SharedRegion {
  std::string name;
  // As shm_open takes it: "/frames" or "frames" is the file "frames".
  std::string key;
  // Of the file.
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Thread-safe. No call waits for more than the file system of memory.
class SharedMemory {
 public:
  struct Options {
    // Whether clients may register anything at all.
    bool allowed = false;
    // Of one tensor; as of one that comes in a message.
    uint64_t most_tensor_bytes = uint64_t{64} << 20;
    // Each keeps a file open.
    size_t most_regions = 256;
    // Where the keys' files are.
    std::string folder = "/dev/shm";
  };

  explicit SharedMemory(Options options);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  bool allowed() const { return options_.allowed; }
  uint64_t most_tensor_bytes() const { return options_.most_tensor_bytes; }

  // UNIMPLEMENTED unless allowed. INVALID_ARGUMENT if the key is no plain name, or the file is not a regular
  // one, is shorter than the region, or belongs to somebody who has not opened it to the daemon's user;
  // NOT_FOUND if there is none; ALREADY_EXISTS if the name is taken; RESOURCE_EXHAUSTED if there are too
  // many.
  absl::Status Register(const SharedRegion& region);

  // The empty name is all of them. Calls that use the region go on with it; a name that is not registered is
  // passed over.
  void Unregister(absl::string_view name);

  // By name; the empty one is all of them. NOT_FOUND unless it is registered.
  absl::StatusOr<std::vector<SharedRegion>> Status(absl::string_view name) const;

  // UNIMPLEMENTED unless allowed. NOT_FOUND if there is no such region, INVALID_ARGUMENT if the range is not
  // inside it, or larger than a tensor may be.
  absl::Status Check(const SharedRange& range) const;

  // A copy of the range's bytes, in one piece. Errors as Check; FAILED_PRECONDITION if the file is shorter
  // than it was when it was registered.
  absl::StatusOr<BytePieces> Read(const SharedRange& range) const;

  // To the beginning of the range. INVALID_ARGUMENT if it is too small for them; other errors as Read.
  absl::Status Write(const SharedRange& range, const BytePieces& bytes) const;

 private:
  struct Open;
  absl::StatusOr<std::shared_ptr<const Open>> Opened(const SharedRange& range) const;

  const Options options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Open>, std::less<>> regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server

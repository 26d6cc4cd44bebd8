// Shared memory that clients on the same machine register by name, and through which they pass input and
// output tensors: system shared memory, which are files in /dev/shm, and CUDA shared memory, which is on a
// GPU. Regions of both kinds have one set of names and of limits.
//
// Nothing is mapped. Bytes are copied by pread and pwrite, because a client may modify or truncate its file
// at any time: a copy cannot change after it was checked, and a file that is too short is an error, not a
// SIGBUS (docs/decisions/0022). Memory on a GPU is opened by its CUDA IPC handle, and its bytes are copied,
// too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_pieces.h"
#include "server/core/tensor.h"
#include "server/shared_memory/cuda_memory.h"

namespace saccade::server {

enum class RegionKind { kSystem, kCuda };

struct SharedRegion {
  std::string name;
  // The file of system shared memory, as for shm_open: both "/frames" and "frames" name the file "frames".
  // The CUDA IPC handle of CUDA shared memory.
  std::string key;
  // The region's range in the file, in bytes. CUDA shared memory begins where its handle says, at offset 0.
  uint64_t offset = 0;
  uint64_t size = 0;
  // The GPU that has the memory; nothing for system shared memory.
  std::optional<int64_t> gpu = std::nullopt;

  RegionKind kind() const { return gpu ? RegionKind::kCuda : RegionKind::kSystem; }
};

// A region belongs to the token with which it was registered: other tokens neither see nor use nor unregister
// it, and may use its name for regions of their own. `client` is the key of the client that calls
// (CallHead::client); all clients without a token share their regions.
//
// Thread-safe. Calls block only for operations on the in-memory file system, and of the GPU for CUDA regions.
class SharedMemory {
 public:
  // A registered region, which can be used as long as it is held, even if it is unregistered meanwhile.
  struct Open;
  using Held = std::shared_ptr<const Open>;

  struct Options {
    // If false, clients cannot register or use shared memory.
    bool allowed = false;
    // Maximum size of one tensor; the same bound as for a tensor in a message.
    uint64_t max_tensor_bytes = uint64_t{64} << 20;
    // Maximum number of regions. Each keeps a file descriptor open, or memory on a GPU mapped.
    size_t max_regions = 256;
    // Maximum number of regions of one token.
    size_t max_regions_of_token = 64;
    // Folder of the files that the keys name.
    std::string folder = "/dev/shm";
    SharedGpus gpus = {};
  };

  explicit SharedMemory(Options options);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  bool allowed() const { return options_.allowed; }
  // UNIMPLEMENTED if clients cannot register such regions: shared memory is not allowed, or there is no GPU.
  absl::Status CanRegister(RegionKind kind) const;
  uint64_t max_tensor_bytes() const { return options_.max_tensor_bytes; }

  // UNIMPLEMENTED unless CanRegister(). INVALID_ARGUMENT if the name
  // or size is invalid, if a handle is refused by CudaMemory::Open(), or if the key is not a
  // plain name, or the file is not a regular file, is shorter than the region, or is not accessible to the
  // daemon's user (see SharedFile::Open). NOT_FOUND if the file does not exist; ALREADY_EXISTS if the name is
  // registered; RESOURCE_EXHAUSTED if there are too many regions, or too many of the client's token;
  // INTERNAL if the GPU has failed for good.
  absl::Status Register(const SharedRegion& region, absl::string_view client = "");

  // Unregisters a region of that kind, or all of the client's regions of that kind if `name` is empty;
  // ignores unknown names. Calls that already use a region can finish with it.
  void Unregister(absl::string_view name, absl::string_view client = "",
                  RegionKind kind = RegionKind::kSystem);

  // Unregisters the regions of tokens whose key is not in `keys`. Calls that already use a region can finish
  // with it.
  void KeepTokens(const absl::flat_hash_set<absl::string_view>& keys);

  // Returns the region of that name and kind, or all of the client's regions of that kind if `name` is empty.
  // NOT_FOUND if there is no such region.
  absl::StatusOr<std::vector<SharedRegion>> Status(absl::string_view name, absl::string_view client = "",
                                                   RegionKind kind = RegionKind::kSystem) const;

  // Checks that `range` can be used. UNIMPLEMENTED unless allowed; NOT_FOUND if the region is not registered;
  // INVALID_ARGUMENT if the range is not inside the region or exceeds the maximum tensor size.
  absl::Status Check(const SharedRange& range, absl::string_view client = "") const;

  // Copies the range's bytes into one piece. Errors as Check; FAILED_PRECONDITION if the file was truncated
  // after its registration; INTERNAL if the system or the GPU fails.
  absl::StatusOr<BytePieces> Read(const SharedRange& range, absl::string_view client = "") const;

  // Holds the region for a later Write() to `range`. Errors as Check.
  absl::StatusOr<Held> Hold(const SharedRange& range, absl::string_view client = "") const;

  // Whether the region's memory is on a GPU: a thread that writes it, or that releases it last, waits.
  static bool IsOnGpu(const Held& region);

  // Writes `bytes` to the start of the range. INVALID_ARGUMENT if the range is too small; FAILED_PRECONDITION
  // if the file was truncated; INTERNAL if the system or the GPU fails. REQUIRES: `region` was held for
  // `range`.
  static absl::Status Write(const Held& region, const SharedRange& range, const BytePieces& bytes);

 private:
  // Opens the region's memory. Errors as Register.
  absl::StatusOr<std::unique_ptr<const RegionMemory>> OpenMemory(const SharedRegion& region) const;

  // Number of regions of `owner`.
  size_t RegionsOf(const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // By the owner's key and the region's name.
  using Regions = std::map<std::pair<std::string, std::string>, std::shared_ptr<const Open>>;

  const Options options_;
  mutable absl::Mutex mutex_;
  Regions regions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server

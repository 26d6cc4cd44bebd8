// What the daemon and a worker process send each other over a socket that keeps messages apart. Both are of
// one build, so the messages are structs. The daemon checks everything in a reply: a worker may have been
// taken over by the picture that it decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/core/request.h"
#include "server/decode/volume.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// Descriptors of the helper process and of the workers that it forks.
inline constexpr int kWorkerControl = 3;
inline constexpr int kWorkerSocket = 4;
inline constexpr int kWorkerMemory = 5;

// An order to the helper. A kSpawn comes with the worker's end of its socket and its shared memory.
struct HelperOrder {
  enum class Kind : int32_t { kSpawn, kEnd };
  Kind kind = Kind::kSpawn;
  int32_t pid = 0;
};

struct HelperReply {
  // kSpawn: the worker's process, or a negative errno.
  int32_t pid = 0;
  // kEnd: what waitpid told.
  int32_t wait_status = 0;
};

enum class WorkerTask : int32_t {
  kReadHeader,
  kDecode,
  kDecodeRegion,
  kOpenVideo,
  kNextFrame,
  kConvertFrame,
  kReadVolume,
  kDecodeVolume,
  kDrill,
};

// What a worker of the tests does wrong.
enum class Drill : int32_t {
  kCrash,
  kLoop,
  kLoopWithoutLimits,
  kLoopAfterwards,
  kAllocate,
  kOpenFiles,
  kOpenSockets,
  kStartProcesses,
  kExecutableMemory
};

struct WorkerJob {
  WorkerTask task = WorkerTask::kReadHeader;
  Drill drill = Drill::kCrash;
  // The shared memory: the encoded file, then room for what it is decoded to.
  uint64_t memory_bytes = 0;
  uint64_t input_bytes = 0;
  // What the worker may map in addition to what it has.
  uint64_t max_more_bytes = 0;
  // Processor time for this job.
  uint64_t max_cpu_seconds = 0;
  DecodeLimits limits;
  PictureHeader header;
  Region region;
  int32_t reduction = 1;
  int64_t max_voxels = 0;
  VolumeHeader volume;
};

struct WorkerVideo {
  double frames_per_second = 0;
  int64_t claimed_frames = 0;
  int64_t width = 0;
  int64_t height = 0;
  int64_t memory_bytes = 0;
  int64_t decoded_pixels = 0;
  bool has_frame = false;
};

// Decoded pixels in the shared memory.
struct WorkerPixels {
  uint64_t offset = 0;
  uint64_t row_bytes = 0;
  int64_t width = 0;
  int64_t height = 0;
  int64_t sent_width = 0;
  int64_t sent_height = 0;
};

struct WorkerReply {
  static constexpr size_t kMaxText = 1024;

  // An absl::StatusCode, with its message.
  int32_t code = 0;
  uint32_t text_bytes = 0;
  char text[kMaxText] = {};
  PictureHeader header;
  VolumeHeader volume;
  WorkerVideo video;
  WorkerPixels pixels;
};

// Where decoded data may start behind `input_bytes` of shared memory.
constexpr uint64_t DecodedOffset(uint64_t input_bytes) { return (input_bytes + 63) / 64 * 64; }

}  // namespace saccade::server

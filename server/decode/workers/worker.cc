#include "server/decode/workers/worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decode/prepare.h"
#include "server/decode/video.h"
#include "server/decode/volume.h"
#include "server/decode/workers/arena_allocator.h"
#include "server/decode/workers/drills.h"
#include "server/decode/workers/messages.h"
#include "server/decode/workers/sandbox.h"
#include "server/pictures/opencv.h"

namespace saccade::server {
namespace {

class Worker {
 public:
  Worker(int statm, bool drills) : statm_(statm), drills_(drills) {}

  // Maps the shared memory if the job needs more of it than before, and does the job.
  void Do(const WorkerJob& job, WorkerReply& reply) {
    // The limit of the last job may be less than what this one maps.
    LimitJob(statm_, job.memory_bytes + job.max_more_bytes, job.max_cpu_seconds);
    absl::Status done = Map(job.memory_bytes);
    if (done.ok()) {
      LimitJob(statm_, job.max_more_bytes, job.max_cpu_seconds);
      try {
        done = Dispatch(job, reply);
      } catch (const std::bad_alloc&) {
        done = absl::ResourceExhaustedError(
            "out of memory while decoding; try again later or send a smaller one");
      }
    }
    reply.code = static_cast<int32_t>(done.code());
    reply.text_bytes = static_cast<uint32_t>(std::min(done.message().size(), WorkerReply::kMaxText));
    std::copy_n(done.message().data(), reply.text_bytes, reply.text);
  }

 private:
  absl::Status Map(uint64_t bytes) {
    if (bytes <= mapped_) return absl::OkStatus();
    if (memory_ != nullptr) munmap(memory_, mapped_);
    mapped_ = 0;
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kWorkerMemory, 0);
    memory_ = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
    if (memory_ == nullptr)
      return absl::ResourceExhaustedError("a decode worker has no room for the picture; try again later");
    mapped_ = bytes;
    return absl::OkStatus();
  }

  void CloseVideo() {
    video_.reset();
    if (video_file_ != nullptr) munmap(std::exchange(video_file_, nullptr), video_bytes_);
  }

  absl::Status Dispatch(const WorkerJob& job, WorkerReply& reply) {
    if (job.task != WorkerTask::kNextFrame && job.task != WorkerTask::kConvertFrame) CloseVideo();
    const std::string_view input(reinterpret_cast<const char*>(memory_), job.input_bytes);
    const Picture file = EncodedPicture{.data = {.owner = nullptr, .bytes = input}};
    switch (job.task) {
      case WorkerTask::kReadHeader:
        return Take(ReadPictureHeader(input, job.limits), reply.header);
      case WorkerTask::kDecode:
        UseRest(job);
        return Show(job, DecodeWhole(input, job.header, job.reduction), reply.pixels);
      case WorkerTask::kDecodeRegion:
        UseRest(job);
        return Show(job, DecodeRegion(input, job.header, job.region, job.limits), reply.pixels);
      case WorkerTask::kOpenVideo:
        return OpenVideo(job, reply.video);
      case WorkerTask::kNextFrame:
        if (video_ == nullptr) return absl::InternalError("no video is open");
        reply.video.has_frame = video_->Skip();
        Describe(reply.video);
        return video_->status();
      case WorkerTask::kConvertFrame:
        if (video_ == nullptr) return absl::InternalError("no video is open");
        UseRest(job);
        return Show(job, video_->Last(), reply.pixels);
      case WorkerTask::kReadVolume:
        return Take(ReadVolumeHeader(file, job.max_voxels), reply.volume);
      case WorkerTask::kDecodeVolume: {
        auto* const out = reinterpret_cast<float*>(memory_ + DecodedOffset(job.input_bytes));
        return WriteVolume(file, job.volume, absl::MakeSpan(out, static_cast<size_t>(job.volume.voxels())));
      }
      case WorkerTask::kDrill:
        return drills_ ? Perform(job.drill) : absl::PermissionDeniedError("drills are not allowed");
    }
    return absl::InternalError("the job is unknown");
  }

  template <typename T>
  static absl::Status Take(const absl::StatusOr<T>& result, T& to) {
    if (result.ok()) to = *result;
    return result.status();
  }

  void UseRest(const WorkerJob& job) {
    const uint64_t offset = DecodedOffset(job.input_bytes);
    AllocatePicturesIn(memory_ + offset, job.memory_bytes - offset);
  }

  // Tells where the pixels are, and moves them into the shared memory if a library allocated them elsewhere.
  absl::Status Show(const WorkerJob& job, const absl::StatusOr<DecodedPicture>& decoded,
                    WorkerPixels& pixels) {
    if (!decoded.ok()) return decoded.status();
    const SourcePixels& source = decoded->pixels;
    pixels = {.offset = 0,
              .row_bytes = source.row_bytes,
              .width = source.width,
              .height = source.height,
              .sent_width = decoded->sent.width,
              .sent_height = decoded->sent.height};
    const auto address = reinterpret_cast<uintptr_t>(source.data);
    const auto begin = reinterpret_cast<uintptr_t>(memory_);
    if (address >= begin && address < begin + job.memory_bytes) {
      pixels.offset = address - begin;
      return absl::OkStatus();
    }
    pixels.offset = DecodedOffset(job.input_bytes);
    pixels.row_bytes = 3 * static_cast<uint64_t>(source.width);
    if (pixels.row_bytes * static_cast<uint64_t>(source.height) > job.memory_bytes - pixels.offset)
      return absl::InternalError("the decoded picture is larger than its header said");
    for (int64_t y = 0; y < source.height; ++y) {
      std::memcpy(memory_ + pixels.offset + static_cast<uint64_t>(y) * pixels.row_bytes,
                  source.data + static_cast<uint64_t>(y) * source.row_bytes, pixels.row_bytes);
    }
    return absl::OkStatus();
  }

  // The video reads its file while it is decoded, and the shared memory may be mapped elsewhere for its
  // frames; so the file gets a mapping of its own.
  absl::Status OpenVideo(const WorkerJob& job, WorkerVideo& told) {
    void* const file = mmap(nullptr, job.input_bytes, PROT_READ, MAP_SHARED, kWorkerMemory, 0);
    if (file == MAP_FAILED)
      return absl::ResourceExhaustedError("a decode worker has no room for the video; try again later");
    video_file_ = file;
    video_bytes_ = job.input_bytes;
    auto opened = Video::Open({static_cast<const char*>(file), job.input_bytes}, job.limits);
    if (!opened.ok()) return opened.status();
    video_ = *std::move(opened);
    Describe(told);
    return absl::OkStatus();
  }

  void Describe(WorkerVideo& told) const {
    told.frames_per_second = video_->frames_per_second();
    told.claimed_frames = video_->claimed_frames();
    told.width = video_->size().width;
    told.height = video_->size().height;
    told.memory_bytes = video_->memory_bytes();
    told.decoded_pixels = video_->decoded_pixels();
  }

  const int statm_;
  const bool drills_;
  uint8_t* memory_ = nullptr;
  uint64_t mapped_ = 0;
  std::unique_ptr<Video> video_;
  void* video_file_ = nullptr;
  size_t video_bytes_ = 0;
};

// When memory runs out, the kernel ends a worker before the daemon.
void GoFirst() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  constexpr std::string_view kScore = "500";
  // Without it, the kernel chooses as it always does.
  static_cast<void>(!write(file, kScore.data(), kScore.size()));
  close(file);
}

bool Send(const WorkerReply& reply) {
  return send(kWorkerSocket, &reply, sizeof(reply), MSG_NOSIGNAL) == sizeof(reply);
}

}  // namespace

void PrepareOpenCv() { SetUpOpenCv(); }

void RunWorker(bool drills) {
  prctl(PR_SET_NAME, "decode-worker");
  GoFirst();
  const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  WorkerReply ready;
  const std::string refused = statm < 0 ? "/proc/self/statm cannot be read" : EnterSandbox();
  if (!refused.empty()) {
    ready.code = static_cast<int32_t>(absl::StatusCode::kUnimplemented);
    ready.text_bytes = static_cast<uint32_t>(std::min(refused.size(), WorkerReply::kMaxText));
    std::memcpy(ready.text, refused.data(), ready.text_bytes);
  }
  if (!Send(ready) || !refused.empty()) _exit(1);
  Worker worker(statm, drills);
  WorkerJob job;
  while (recv(kWorkerSocket, &job, sizeof(job), 0) == sizeof(job)) {
    WorkerReply reply;
    worker.Do(job, reply);
    if (!Send(reply)) break;
  }
  _exit(0);
}

}  // namespace saccade::server

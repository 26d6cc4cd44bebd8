#include "server/decode/workers/worker_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include "server/decode/workers/checked_video.h"

namespace saccade::server {
namespace {

// Memory that a worker may take beyond what grows with the picture: libraries, tiles of small TIFFs, stacks.
constexpr uint64_t kAnyPicture = uint64_t{256} << 20;
// Six to eight bytes for each pixel were measured in the libraries' own buffers, and files are copied once.
constexpr uint64_t kBytesForPixel = 16;
constexpr uint64_t kBytesForInputByte = 4;

const EncodedPicture* FileOf(const Picture& picture) { return std::get_if<EncodedPicture>(&picture); }

uint64_t MoreBytes(std::string_view input, int64_t pixels) {
  return kAnyPicture + kBytesForInputByte * input.size() + kBytesForPixel * static_cast<uint64_t>(pixels);
}

// Room for a picture and for the same turned upright.
uint64_t RoomFor(int64_t width, int64_t height) {
  return 2 * DecodedOffset(3 * static_cast<uint64_t>(width) * static_cast<uint64_t>(height));
}

// Checks a header that a worker read.
absl::StatusOr<PictureHeader> Checked(const PictureHeader& header, const DecodeLimits& limits) {
  if (header.format != PictureFormat::kTiff || header.copied_bytes != 0 || header.width < 1 ||
      header.height < 1 || !IsBool(header.by_regions))
    return BadReply();
  if (header.by_regions) {
    if (std::max({header.width, header.height, header.tile_width, header.tile_height}) > kMaxRegionalSide ||
        std::min(header.tile_width, header.tile_height) < 1)
      return BadReply();
    return header;
  }
  if (absl::Status fits = CheckPixels(header.width, header.height, limits); !fits.ok()) return fits;
  return header;
}

class WorkerRegions final : public PictureRegions {
 public:
  WorkerRegions(std::unique_ptr<DecodeWorker> worker, std::string_view bytes, const PictureHeader& header,
                const DecodeLimits& limits, StillWanted wanted)
      : worker_(std::move(worker)),
        bytes_(bytes),
        header_(header),
        limits_(limits),
        wanted_(std::move(wanted)) {}

  absl::StatusOr<DecodedPicture> Read(const Region& region) override {
    if (absl::Status fits = CheckRegion(region, header_, limits_); !fits.ok()) return fits;
    if (absl::Status room = worker_->Reserve(RoomFor(region.width, region.height)); !room.ok()) return room;
    WorkerJob job;
    job.task = WorkerTask::kDecodeRegion;
    job.limits = limits_;
    job.header = header_;
    job.region = region;
    job.max_more_bytes = MoreBytes(bytes_, int64_t{region.width} * region.height);
    const auto reply = worker_->Run(job, wanted_);
    if (!reply.ok()) return reply.status();
    auto pixels = worker_->Pixels(*reply);
    if (!pixels.ok()) return pixels.status();
    if (pixels->width != region.width || pixels->height != region.height) return BadReply();
    DecodedPicture picture;
    picture.pixels = *pixels;
    picture.sent = {region.height, region.width};
    picture.whole = {header_.height, header_.width};
    return picture;
  }

 private:
  const std::unique_ptr<DecodeWorker> worker_;
  const std::string_view bytes_;
  const PictureHeader header_;
  const DecodeLimits limits_;
  const StillWanted wanted_;
};

class WorkerVideoFile final : public Video {
 public:
  static absl::StatusOr<std::unique_ptr<Video>> Open(std::unique_ptr<DecodeWorker> worker,
                                                     std::string_view bytes, const DecodeLimits& limits,
                                                     const StillWanted& wanted) {
    if (absl::Status loaded = worker->Load(bytes, 0); !loaded.ok()) return loaded;
    std::unique_ptr<WorkerVideoFile> video(new WorkerVideoFile(std::move(worker), bytes, limits, wanted));
    const auto reply = video->Run(WorkerTask::kOpenVideo);
    if (!reply.ok()) return reply.status();
    if (absl::Status taken = video->video_.Take(reply->video); !taken.ok()) return taken;
    return video;
  }

  double frames_per_second() const override { return now().frames_per_second; }
  int64_t claimed_frames() const override { return now().claimed_frames; }
  models::Size size() const override { return {now().height, now().width}; }
  int64_t memory_bytes() const override { return now().memory_bytes; }
  int64_t decoded_pixels() const override { return video_.decoded_pixels(); }
  absl::Status status() const override { return status_; }

  bool Skip() override {
    const auto reply = Run(WorkerTask::kNextFrame);
    status_ = reply.ok() ? video_.Take(reply->video) : reply.status();
    return status_.ok() && now().has_frame;
  }

  absl::StatusOr<DecodedPicture> Last() override {
    if (absl::Status room = worker_->Reserve(RoomFor(Padded(now().width), Padded(now().height))); !room.ok())
      return room;
    const auto reply = Run(WorkerTask::kConvertFrame);
    if (!reply.ok()) return reply.status();
    auto pixels = worker_->Pixels(*reply);
    if (!pixels.ok()) return pixels.status();
    if (pixels->width != now().width || pixels->height != now().height) return BadReply();
    DecodedPicture picture;
    picture.pixels = *pixels;
    picture.sent = picture.whole = size();
    return picture;
  }

 private:
  WorkerVideoFile(std::unique_ptr<DecodeWorker> worker, std::string_view bytes, const DecodeLimits& limits,
                  StillWanted wanted)
      : worker_(std::move(worker)),
        bytes_(bytes),
        limits_(limits),
        wanted_(std::move(wanted)),
        video_(bytes.size(), limits) {}

  const WorkerVideo& now() const { return video_.now(); }

  // FFmpeg writes groups of pixels.
  static int64_t Padded(int64_t side) { return side + 64; }

  absl::StatusOr<WorkerReply> Run(WorkerTask task) {
    WorkerJob job;
    job.task = task;
    job.limits = limits_;
    job.max_more_bytes =
        MoreBytes(bytes_, now().width * now().height) + 2 * static_cast<uint64_t>(now().memory_bytes);
    return worker_->Run(job, wanted_);
  }

  const std::unique_ptr<DecodeWorker> worker_;
  const std::string_view bytes_;
  const DecodeLimits limits_;
  const StillWanted wanted_;
  CheckedVideo video_;
  absl::Status status_;
};

}  // namespace

int64_t WorkerDecoder::CopiedBytes(const Picture& picture) const {
  const EncodedPicture* const file = FileOf(picture);
  return file == nullptr ? 0 : static_cast<int64_t>(file->data.bytes.size());
}

int64_t WorkerDecoder::CopiedVoxelBytes(const Picture& volume, const VolumeHeader& header) const {
  return FileOf(volume) == nullptr ? 0 : header.voxels() * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<PictureHeader> WorkerDecoder::ReadHeader(const Picture& picture,
                                                        const StillWanted& wanted) const {
  const EncodedPicture* const file = FileOf(picture);
  const std::string_view bytes = file == nullptr ? std::string_view() : file->data.bytes;
  if (!IsTiff(bytes) || static_cast<int64_t>(bytes.size()) > limits().max_bytes)
    return server::ReadHeader(picture, limits());
  auto worker = pool_->Acquire();
  if (!worker.ok()) return worker.status();
  if (absl::Status loaded = (*worker)->Load(bytes, 0); !loaded.ok()) return loaded;
  WorkerJob job;
  job.task = WorkerTask::kReadHeader;
  job.limits = limits();
  job.max_more_bytes = MoreBytes(bytes, 0);
  const auto reply = (*worker)->Run(job, wanted);
  if (!reply.ok()) return reply.status();
  return Checked(reply->header, limits());
}

absl::StatusOr<DecodedPicture> WorkerDecoder::Decode(const Picture& picture, const PictureHeader& header,
                                                     const models::ImageInput& input,
                                                     const std::optional<Region>& region,
                                                     const StillWanted& wanted) const {
  const EncodedPicture* const file = FileOf(picture);
  if (file == nullptr) return DecodePicture(picture, header, input, region);
  if (header.by_regions) return DecodePart(picture, header, region, wanted);
  auto acquired = pool_->Acquire();
  if (!acquired.ok()) return acquired.status();
  const std::shared_ptr<DecodeWorker> worker = *std::move(acquired);
  WorkerJob job;
  job.task = WorkerTask::kDecode;
  job.header = header;
  job.reduction = ReductionOf(header, input, region);
  job.max_more_bytes = MoreBytes(file->data.bytes, header.pixels());
  const int64_t width = (header.width + job.reduction - 1) / job.reduction;
  const int64_t height = (header.height + job.reduction - 1) / job.reduction;
  if (absl::Status loaded = worker->Load(file->data.bytes, RoomFor(width, height)); !loaded.ok())
    return loaded;
  const auto reply = worker->Run(job, wanted);
  if (!reply.ok()) return reply.status();
  auto pixels = worker->Pixels(*reply);
  if (!pixels.ok()) return pixels.status();
  const bool turned = pixels->width != width;
  if (pixels->width != (turned ? height : width) || pixels->height != (turned ? width : height))
    return BadReply();
  DecodedPicture decoded;
  decoded.pixels = *pixels;
  decoded.owner = worker;
  decoded.sent = decoded.whole =
      turned ? models::Size{header.width, header.height} : models::Size{header.height, header.width};
  decoded.reduction = job.reduction;
  if (absl::Status cut = CutRegion(region, decoded); !cut.ok()) return cut;
  return decoded;
}

absl::StatusOr<DecodedPicture> WorkerDecoder::DecodePart(const Picture& picture, const PictureHeader& header,
                                                         const std::optional<Region>& region,
                                                         const StillWanted& wanted) const {
  if (!region) return CheckWhole(header);
  auto opened = OpenRegions(picture, header, wanted);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<PictureRegions> regions = *std::move(opened);
  auto decoded = regions->Read(*region);
  if (decoded.ok()) decoded->owner = regions;
  return decoded;
}

absl::StatusOr<std::unique_ptr<PictureRegions>> WorkerDecoder::OpenRegions(const Picture& picture,
                                                                           const PictureHeader& header,
                                                                           const StillWanted& wanted) const {
  const std::string_view bytes = std::get<EncodedPicture>(picture).data.bytes;
  auto worker = pool_->Acquire();
  if (!worker.ok()) return worker.status();
  if (absl::Status loaded = (*worker)->Load(bytes, 0); !loaded.ok()) return loaded;
  return std::make_unique<WorkerRegions>(*std::move(worker), bytes, header, limits(), wanted);
}

absl::StatusOr<std::unique_ptr<Video>> WorkerDecoder::OpenVideo(std::string_view bytes,
                                                                const StillWanted& wanted) const {
  auto worker = pool_->Acquire();
  if (!worker.ok()) return worker.status();
  return WorkerVideoFile::Open(*std::move(worker), bytes, limits(), wanted);
}

absl::StatusOr<VolumeHeader> WorkerDecoder::ReadVolume(const Picture& volume, int64_t max_voxels,
                                                       const StillWanted& wanted) const {
  const EncodedPicture* const file = FileOf(volume);
  if (file == nullptr) return ReadVolumeHeader(volume, max_voxels);
  auto worker = pool_->Acquire();
  if (!worker.ok()) return worker.status();
  if (absl::Status loaded = (*worker)->Load(file->data.bytes, 0); !loaded.ok()) return loaded;
  WorkerJob job;
  job.task = WorkerTask::kReadVolume;
  job.max_voxels = max_voxels;
  job.max_more_bytes = MoreBytes(file->data.bytes, 0);
  const auto reply = (*worker)->Run(job, wanted);
  if (!reply.ok()) return reply.status();
  const VolumeHeader& header = reply->volume;
  if (header.depth < 1 || header.height < 1 || header.width < 1) return BadReply();
  if (absl::Status fits = CheckVoxels(header, max_voxels); !fits.ok()) return fits;
  // The type decides how the answer is stored.
  if (header.type != VoxelType::kUint8 && header.type != VoxelType::kUint16 &&
      header.type != VoxelType::kFloat32)
    return BadReply();
  return header;
}

absl::Status WorkerDecoder::DecodeVolume(const Picture& volume, const VolumeHeader& header,
                                         absl::Span<float> out, const StillWanted& wanted) const {
  const EncodedPicture* const file = FileOf(volume);
  if (file == nullptr) return WriteVolume(volume, header, out);
  auto worker = pool_->Acquire();
  if (!worker.ok()) return worker.status();
  const uint64_t decoded_bytes = out.size() * sizeof(float);
  if (absl::Status loaded = (*worker)->Load(file->data.bytes, decoded_bytes); !loaded.ok()) return loaded;
  WorkerJob job;
  job.task = WorkerTask::kDecodeVolume;
  job.volume = header;
  job.max_more_bytes = MoreBytes(file->data.bytes, header.height * header.width);
  const auto reply = (*worker)->Run(job, wanted);
  if (!reply.ok()) return reply.status();
  std::memcpy(out.data(), (*worker)->decoded(), decoded_bytes);
  return absl::OkStatus();
}

}  // namespace saccade::server

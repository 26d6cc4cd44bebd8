// Decodes in worker processes, which may crash, loop or be taken over without harm to the daemon. Headers of
// all formats but TIFF and videos are read by code of our own in the daemon.
#pragma once

#include "server/decode/decoder.h"
#include "server/decode/workers/worker_pool.h"

namespace saccade::server {

class WorkerDecoder final : public Decoder {
 public:
  // `pool` must outlive the decoder and all pictures that it returns.
  WorkerDecoder(const DecodeLimits& limits, WorkerPool* pool) : Decoder(limits), pool_(pool) {}

  int64_t CopiedBytes(const Picture& picture) const override;
  int64_t CopiedVoxelBytes(const Picture& volume, const VolumeHeader& header) const override;
  absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture, const StillWanted& wanted) const override;
  // The pixels lie in the memory of the worker, which is held as long as the picture.
  absl::StatusOr<DecodedPicture> Decode(const Picture& picture, const PictureHeader& header,
                                        const models::ImageInput& input, const std::optional<Region>& region,
                                        const StillWanted& wanted) const override;
  // The worker is held as long as the result.
  absl::StatusOr<std::unique_ptr<PictureRegions>> OpenRegions(const Picture& picture,
                                                              const PictureHeader& header,
                                                              const StillWanted& wanted) const override;
  absl::StatusOr<std::unique_ptr<Video>> OpenVideo(std::string_view bytes,
                                                   const StillWanted& wanted) const override;
  absl::StatusOr<VolumeHeader> ReadVolume(const Picture& volume, int64_t max_voxels,
                                          const StillWanted& wanted) const override;
  absl::Status DecodeVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out,
                            const StillWanted& wanted) const override;

 private:
  // Decodes the region of a picture that is too large to be decoded whole.
  absl::StatusOr<DecodedPicture> DecodePart(const Picture& picture, const PictureHeader& header,
                                            const std::optional<Region>& region,
                                            const StillWanted& wanted) const;

  WorkerPool* const pool_;
};

}  // namespace saccade::server

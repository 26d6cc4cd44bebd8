// Decodes what clients send: on the calling thread (ThreadDecoder), or in worker processes
// (workers/worker_decoder.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/request.h"
#include "server/decode/prepare.h"
#include "server/decode/video.h"
#include "server/decode/volume.h"
#include "server/pictures/picture_header.h"
#include "server/pictures/still_wanted.h"

namespace saccade::server {

// A picture that is too large to be decoded whole. Not thread-safe.
class PictureRegions {
 public:
  PictureRegions() = default;
  PictureRegions(const PictureRegions&) = delete;
  PictureRegions& operator=(const PictureRegions&) = delete;
  virtual ~PictureRegions() = default;

  // As DecodeRegion(). The pixels are valid until the next call. Blocks.
  virtual absl::StatusOr<DecodedPicture> Read(const Region& region) = 0;
};

// Thread-safe. The functions block; call them on the decode pool. Their errors are those of the functions of
// the same name in prepare.h, volume.h and video.h, the error of `wanted`, and those of a decoder's own.
class Decoder {
 public:
  explicit Decoder(const DecodeLimits& limits) : limits_(limits) {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  const DecodeLimits& limits() const { return limits_; }

  // Bytes that decoding `picture` takes in addition to what the picture takes decoded, because it is copied.
  // The caller charges for them before it calls any of the functions below.
  virtual int64_t CopiedBytes(const Picture& picture) const = 0;
  // The same for the voxels of a volume.
  virtual int64_t CopiedVoxelBytes(const Picture& volume, const VolumeHeader& header) const = 0;

  virtual absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture,
                                                   const StillWanted& wanted) const = 0;
  // Decodes nothing but `region` of a picture that is read by regions.
  virtual absl::StatusOr<DecodedPicture> Decode(const Picture& picture, const PictureHeader& header,
                                                const models::ImageInput& input,
                                                const std::optional<Region>& region,
                                                const StillWanted& wanted) const = 0;
  // REQUIRES: header.by_regions. `wanted` is copied. `picture` and the decoder must outlive the result.
  virtual absl::StatusOr<std::unique_ptr<PictureRegions>> OpenRegions(const Picture& picture,
                                                                      const PictureHeader& header,
                                                                      const StillWanted& wanted) const = 0;
  // `wanted` is copied. `bytes` and the decoder must outlive the result.
  virtual absl::StatusOr<std::unique_ptr<Video>> OpenVideo(std::string_view bytes,
                                                           const StillWanted& wanted) const = 0;
  virtual absl::StatusOr<VolumeHeader> ReadVolume(const Picture& volume, int64_t max_voxels,
                                                  const StillWanted& wanted) const = 0;
  virtual absl::Status DecodeVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out,
                                    const StillWanted& wanted) const = 0;

 private:
  const DecodeLimits limits_;
};

// Decodes on the calling thread.
class ThreadDecoder final : public Decoder {
 public:
  using Decoder::Decoder;

  int64_t CopiedBytes(const Picture& picture) const override;
  int64_t CopiedVoxelBytes(const Picture& volume, const VolumeHeader& header) const override;
  absl::StatusOr<PictureHeader> ReadHeader(const Picture& picture, const StillWanted& wanted) const override;
  absl::StatusOr<DecodedPicture> Decode(const Picture& picture, const PictureHeader& header,
                                        const models::ImageInput& input, const std::optional<Region>& region,
                                        const StillWanted& wanted) const override;
  absl::StatusOr<std::unique_ptr<PictureRegions>> OpenRegions(const Picture& picture,
                                                              const PictureHeader& header,
                                                              const StillWanted& wanted) const override;
  absl::StatusOr<std::unique_ptr<Video>> OpenVideo(std::string_view bytes,
                                                   const StillWanted& wanted) const override;
  absl::StatusOr<VolumeHeader> ReadVolume(const Picture& volume, int64_t max_voxels,
                                          const StillWanted& wanted) const override;
  absl::Status DecodeVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out,
                            const StillWanted& wanted) const override;
};

}  // namespace saccade::server

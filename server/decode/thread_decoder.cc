#include "server/decode/decoder.h"

#include <utility>
#include <variant>

namespace saccade::server {
namespace {

class ThreadRegions final : public PictureRegions {
 public:
  ThreadRegions(std::string_view bytes, const PictureHeader& header, const DecodeLimits& limits,
                StillWanted wanted)
      : bytes_(bytes), header_(header), limits_(limits), wanted_(std::move(wanted)) {}

  absl::StatusOr<DecodedPicture> Read(const Region& region) override {
    return DecodeRegion(bytes_, header_, region, limits_, wanted_);
  }

 private:
  const std::string_view bytes_;
  const PictureHeader header_;
  const DecodeLimits limits_;
  const StillWanted wanted_;
};

}  // namespace

int64_t ThreadDecoder::CopiedBytes(const Picture& /*picture*/) const { return 0; }

int64_t ThreadDecoder::CopiedVoxelBytes(const Picture& /*volume*/, const VolumeHeader& /*header*/) const {
  return 0;
}

absl::StatusOr<PictureHeader> ThreadDecoder::ReadHeader(const Picture& picture,
                                                        const StillWanted& /*wanted*/) const {
  return server::ReadHeader(picture, limits());
}

absl::StatusOr<DecodedPicture> ThreadDecoder::Decode(const Picture& picture, const PictureHeader& header,
                                                     const models::ImageInput& input,
                                                     const std::optional<Region>& region,
                                                     const StillWanted& wanted) const {
  if (header.by_regions && region)
    return DecodeRegion(std::get<EncodedPicture>(picture).data.bytes, header, *region, limits(), wanted);
  return DecodePicture(picture, header, input, region, wanted);
}

absl::StatusOr<std::unique_ptr<PictureRegions>> ThreadDecoder::OpenRegions(const Picture& picture,
                                                                           const PictureHeader& header,
                                                                           const StillWanted& wanted) const {
  return std::make_unique<ThreadRegions>(std::get<EncodedPicture>(picture).data.bytes, header, limits(),
                                         wanted);
}

absl::StatusOr<std::unique_ptr<Video>> ThreadDecoder::OpenVideo(std::string_view bytes,
                                                                const StillWanted& wanted) const {
  return Video::Open(bytes, limits(), wanted);
}

absl::StatusOr<VolumeHeader> ThreadDecoder::ReadVolume(const Picture& volume, int64_t max_voxels,
                                                       const StillWanted& wanted) const {
  return ReadVolumeHeader(volume, max_voxels, wanted);
}

absl::Status ThreadDecoder::DecodeVolume(const Picture& volume, const VolumeHeader& header,
                                         absl::Span<float> out, const StillWanted& wanted) const {
  return WriteVolume(volume, header, out, wanted);
}

}  // namespace saccade::server

#include "server/decode/decoder.h"

namespace saccade::server {

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
  return DecodePicture(picture, header, input, region, wanted);
}

absl::StatusOr<std::unique_ptr<Video>> ThreadDecoder::OpenVideo(std::string_view bytes,
                                                                const StillWanted& /*wanted*/) const {
  return Video::Open(bytes, limits());
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

#include "server/decode/volume.h"

#include <algorithm>
#include <memory>
#include <string>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/pictures/tiff_file.h"
#include "server/pictures/voxels.h"

namespace saccade::server {
namespace {

std::string SizeText(int64_t depth, int64_t height, int64_t width) {
  return absl::StrCat(depth, " x ", height, " x ", width);
}

absl::StatusOr<VolumeHeader> CheckRaw(const RawVolume& raw, int64_t max_voxels) {
  const VolumeHeader header{.depth = raw.depth, .height = raw.height, .width = raw.width, .type = raw.type};
  if (raw.depth < 1 || raw.height < 1 || raw.width < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the raw volume is ", SizeText(raw.depth, raw.height, raw.width),
                     " voxels large (depth x height x width); all sides have to be at least 1"));
  }
  if (absl::Status fits = CheckVoxels(header, max_voxels); !fits.ok()) return fits;
  const size_t expected = static_cast<size_t>(header.voxels()) * BytesOf(raw.type);
  if (raw.data.bytes.size() == expected) return header;
  return absl::InvalidArgumentError(absl::StrCat(
      "the raw volume holds ", raw.data.bytes.size(), " bytes; ", SizeText(raw.depth, raw.height, raw.width),
      " voxels of ", BytesOf(raw.type), BytesOf(raw.type) == 1 ? " byte take " : " bytes take ", expected));
}

// The number of images that ImageJ's description of a stack names; 0 if it names none. ImageJ writes large
// stacks with a single page, behind whose pixels those of the other images follow.
int64_t ImagesNamedIn(std::string_view description) {
  // The number is in one of the first lines.
  constexpr size_t kMaxRead = 4096;
  if (!description.starts_with("ImageJ=")) return 0;
  description = description.substr(0, kMaxRead);
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(description.data(), description.size()), '\n')) {
    int64_t images = 0;
    if (absl::ConsumePrefix(&line, "images=") && absl::SimpleAtoi(line, &images)) return images;
  }
  return 0;
}

absl::StatusOr<VolumeHeader> ReadTiffHeader(std::string_view bytes, int64_t max_voxels,
                                            const std::function<absl::Status()>& wanted) {
  auto file = TiffFile::Open(bytes, kMaxVolumeSide);
  if (!file.ok()) return file.status();
  int64_t stored = 0;
  const auto first = (*file)->Page();
  if (!first.ok()) return first.status();
  const int64_t images = ImagesNamedIn((*file)->Description());
  VolumeHeader header{.depth = 0, .height = first->height, .width = first->width, .type = first->type};
  while (true) {
    if (absl::Status goes_on = wanted ? wanted() : absl::OkStatus(); !goes_on.ok()) return goes_on;
    const auto page = (*file)->Page();
    if (!page.ok()) return page.status();
    if (*page != *first) {
      return absl::InvalidArgumentError(
          absl::StrCat("page ", header.depth, " of the TIFF is ", page->width, " x ", page->height,
                       " pixels large, or has another type than page 0, which is ", first->width, " x ",
                       first->height, "; expected pages of one size and type"));
    }
    ++header.depth;
    if (absl::Status fits = CheckVoxels(header, max_voxels); !fits.ok()) return fits;
    stored += (*file)->StoredPixels();
    if (stored > MaxStoredPixels(max_voxels)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the tiles of the TIFF have ", stored, " voxels up to page ", header.depth - 1, "; at most ",
          MaxStoredPixels(max_voxels), " are accepted, so save it again with smaller tiles or with strips"));
    }
    if (absl::Status own = (*file)->CountStoredBytes(); !own.ok()) return own;
    const auto more = (*file)->Next();
    if (!more.ok()) return more.status();
    if (*more) continue;
    if (images <= header.depth) return header;
    return absl::InvalidArgumentError(absl::StrCat("the description names ", images, " images, the file has ",
                                                   header.depth, header.depth == 1 ? " page" : " pages",
                                                   "; save it as a TIFF with a page for each"));
  }
}

absl::Status DecodeTiff(std::string_view bytes, const VolumeHeader& header, float* out,
                        const std::function<absl::Status()>& wanted) {
  auto file = TiffFile::Open(bytes, header.depth, wanted);
  if (!file.ok()) return file.status();
  const TiffPage page{.width = header.width, .height = header.height, .type = header.type};
  for (int64_t plane = 0; plane < header.depth; ++plane) {
    absl::Status read = (*file)->Read(page, out + plane * header.height * header.width);
    if (absl::IsInvalidArgument(read)) {
      return absl::Status(read.code(), absl::StrCat("page ", plane, ": ", std::string(read.message())));
    }
    if (!read.ok()) return read;
    if (plane + 1 == header.depth) break;
    const auto more = (*file)->Next();
    if (!more.ok()) return more.status();
    if (!*more) return absl::InternalError("the TIFF has fewer pages than when its header was read");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckVoxels(const VolumeHeader& header, int64_t max_voxels) {
  if (std::max({header.depth, header.height, header.width}) > kMaxVolumeSide) {
    return absl::InvalidArgumentError(
        absl::StrCat("the volume has ", SizeText(header.depth, header.height, header.width),
                     " voxels (depth x height x width); each dimension may be at most ", kMaxVolumeSide));
  }
  // Divides instead of multiplying, to avoid overflow.
  if (header.depth <= max_voxels / (header.height * header.width)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the volume has ", SizeText(header.depth, header.height, header.width),
                   " voxels (depth x height x width) or more; at most ", max_voxels,
                   " are accepted (the model's option max_voxels); split the volume"));
}

absl::Status CheckPaddedVoxels(const VolumeHeader& header, const models::VolumeInput& input) {
  const auto padded = [](int64_t side, int64_t multiple) {
    return (side + multiple - 1) / multiple * multiple;
  };
  const int64_t depth = padded(header.depth, input.depth_multiple);
  const int64_t height = padded(header.height, input.side_multiple);
  const int64_t width = padded(header.width, input.side_multiple);
  if (depth <= input.max_voxels / (height * width)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the volume has ", SizeText(header.depth, header.height, header.width),
                   " voxels (depth x height x width), which the model pads to ",
                   SizeText(depth, height, width), "; at most ", input.max_voxels,
                   " are accepted, padding included (the model's option max_voxels); split the volume"));
}

absl::StatusOr<VolumeHeader> ReadVolumeHeader(const Picture& volume, int64_t max_voxels,
                                              const std::function<absl::Status()>& wanted) {
  if (const auto* raw = std::get_if<RawVolume>(&volume)) return CheckRaw(*raw, max_voxels);
  if (const auto* file = std::get_if<EncodedPicture>(&volume))
    return ReadTiffHeader(file->data.bytes, max_voxels, wanted);
  return absl::InvalidArgumentError(
      "the input is a raw picture; expected a volume, as a TIFF or as raw voxels");
}

absl::Status WriteVolume(const Picture& volume, const VolumeHeader& header, absl::Span<float> out,
                         const std::function<absl::Status()>& wanted) {
  if (static_cast<int64_t>(out.size()) != header.voxels()) {
    return absl::InternalError(absl::StrCat("the output buffer holds ", out.size(),
                                            " floats, but the volume has ", header.voxels(), " voxels"));
  }
  if (const auto* raw = std::get_if<RawVolume>(&volume)) {
    ToFloats(raw->type, raw->data.bytes, out.data());
    return absl::OkStatus();
  }
  return DecodeTiff(std::get<EncodedPicture>(volume).data.bytes, header, out.data(), wanted);
}

}  // namespace saccade::server

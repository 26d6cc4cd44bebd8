#include "server/pictures/picture_header.h"

#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"
#include "server/pictures/picture_formats.h"

namespace saccade::server {
namespace {

using namespace std::string_view_literals;

constexpr char kAccepted[] = "accepted formats are JPEG, PNG, WebP, TIFF and BMP";

// Names formats that are often sent by mistake.
std::string DescribeOther(const PictureBytes& bytes, std::string_view start) {
  struct Known {
    size_t at;
    std::string_view signature;
    const char* name;
  };
  static constexpr Known kKnown[] = {
      {0, "GIF8"sv, "GIF"},
      {4, "ftypavi"sv, "AVIF"},
      {4, "ftyphe"sv, "HEIC"},
      {4, "ftypmif1"sv, "HEIC"},
      {4, "ftyp"sv, "an MP4 video"},
      {0, "\xFF\x0A"sv, "JPEG XL"},
      {4, "JXL "sv, "JPEG XL"},
      {4, "jP  "sv, "JPEG 2000"},
      {0, "8BPS"sv, "a Photoshop file"},
      {0, "%PDF"sv, "PDF"},
      {0, "<"sv, "markup (SVG, XML or HTML)"},
      {0, "PK\x03\x04"sv, "a ZIP archive"},
      {0, "\x1F\x8B"sv, "gzip data"},
      {0, "/9j/"sv, "base64 text of a JPEG; send the bytes themselves"},
      {0, "iVBOR"sv, "base64 text of a PNG; send the bytes themselves"},
      {0, "data:"sv, "a data URL; send the picture's bytes themselves"},
  };
  for (const Known& known : kKnown) {
    if (bytes.tag(known.at, known.signature)) return absl::StrCat("it is ", known.name);
  }
  const std::string first(start.substr(0, 8));
  return absl::StrCat("it starts with the bytes ", absl::BytesToHexString(first), " (hexadecimal)");
}

// The format that the first bytes name.
std::optional<PictureFormat> FormatOf(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  if (bytes.tag(0, "\xFF\xD8\xFF")) return PictureFormat::kJpeg;
  if (bytes.tag(0, "\x89PNG\r\n\x1A\n")) return PictureFormat::kPng;
  if (bytes.tag(0, "RIFF") && bytes.tag(8, "WEBP")) return PictureFormat::kWebp;
  if (IsTiff(encoded)) return PictureFormat::kTiff;
  if (bytes.tag(0, "BM")) return PictureFormat::kBmp;
  return std::nullopt;
}

absl::StatusOr<PictureHeader> ReadAnyHeader(std::string_view encoded, const DecodeLimits& limits) {
  switch (FormatOf(encoded).value_or(PictureFormat::kRaw)) {
    case PictureFormat::kJpeg:
      return ReadJpegHeader(encoded);
    case PictureFormat::kPng:
      return ReadPngHeader(encoded);
    case PictureFormat::kWebp:
      return ReadWebpHeader(encoded);
    case PictureFormat::kTiff:
      return ReadTiffHeader(encoded, limits);
    case PictureFormat::kBmp:
      return ReadBmpHeader(encoded);
    case PictureFormat::kRaw:
      break;
  }
  const std::string other = DescribeOther(PictureBytes(encoded), encoded);
  return absl::InvalidArgumentError(
      absl::StrCat("not a readable picture: ", other, ", ", encoded.size(), " bytes long; ", kAccepted));
}

}  // namespace

bool IsTiff(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  // Either byte order, and BigTIFF.
  return bytes.tag(0, "II*\0"sv) || bytes.tag(0, "MM\0*"sv) || bytes.tag(0, "II+\0"sv) ||
         bytes.tag(0, "MM\0+"sv);
}

bool IsPicture(std::string_view encoded) { return FormatOf(encoded).has_value(); }

const char* FormatName(PictureFormat format) {
  switch (format) {
    case PictureFormat::kJpeg:
      return "JPEG";
    case PictureFormat::kPng:
      return "PNG";
    case PictureFormat::kWebp:
      return "WebP";
    case PictureFormat::kTiff:
      return "TIFF";
    case PictureFormat::kBmp:
      return "BMP";
    case PictureFormat::kRaw:
      return "raw";
  }
  return "";
}

absl::Status CheckPixels(int64_t width, int64_t height, const DecodeLimits& limits) {
  if (width <= limits.max_pixels / height) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the picture is ", width, " x ", height,
                                                 " pixels large; at most ", limits.max_pixels,
                                                 " pixels are accepted, so scale it down first"));
}

absl::Status CheckWhole(const PictureHeader& header) {
  if (!header.by_regions) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the picture is ", header.width, " x ", header.height,
                   " pixels large, too large to be decoded at once; ask for a region or for tiles"));
}

absl::StatusOr<PictureHeader> ReadPictureHeader(std::string_view bytes, const DecodeLimits& limits) {
  if (bytes.empty()) return absl::InvalidArgumentError(absl::StrCat("the picture is empty; ", kAccepted));
  if (static_cast<int64_t>(bytes.size()) > limits.max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the picture has ", bytes.size(), " bytes; at most ",
                                                   limits.max_bytes, " are accepted"));
  }
  absl::StatusOr<PictureHeader> header = ReadAnyHeader(bytes, limits);
  if (!header.ok() || header->by_regions) return header;
  if (absl::Status fits = CheckPixels(header->width, header->height, limits); !fits.ok()) return fits;
  return header;
}

}  // namespace saccade::server

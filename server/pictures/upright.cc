#include "server/pictures/upright.h"

#include <cstddef>
#include <cstdint>

#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

using namespace std::string_view_literals;

constexpr uint32_t kOrientation = 0x0112;
constexpr size_t kEntryBytes = 12;

}  // namespace

std::string_view WithoutExifName(std::string_view exif) {
  if (exif.starts_with(kExifName)) exif.remove_prefix(kExifName.size());
  return exif;
}

int ExifOrientation(std::string_view exif) {
  const PictureBytes bytes(exif);
  const bool is_big = bytes.tag(0, "MM\0*"sv);
  if (!is_big && !bytes.tag(0, "II*\0"sv)) return 1;
  const auto short_at = [&](size_t at) { return is_big ? bytes.big16(at) : bytes.little16(at); };
  const size_t directory = is_big ? bytes.big32(4) : bytes.little32(4);
  const uint32_t entries = short_at(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (!bytes.has(entry, kEntryBytes)) return 1;
    if (short_at(entry) != kOrientation) continue;
    const uint32_t orientation = short_at(entry + 8);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

void TurnUpright(cv::Mat& picture, int orientation) {
  if (orientation >= 5) cv::transpose(picture, picture);
  switch (orientation) {
    case 2:
    case 6:
      cv::flip(picture, picture, 1);
      return;
    case 3:
    case 7:
      cv::flip(picture, picture, -1);
      return;
    case 4:
    case 8:
      cv::flip(picture, picture, 0);
      return;
    default:
      return;
  }
}

}  // namespace saccade::server

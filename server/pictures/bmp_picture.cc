#include <algorithm>
#include <array>
#include <cstring>

#include "server/pictures/bmp_layout.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

// Rows that are copied before it is asked whether they are still wanted.
constexpr int kBmpRowsAtOnce = 64;

// A value of a colour with fewer or more than 8 bits, as the nearest one with 8.
uint8_t EightBits(uint32_t pixel, const BmpChannel& channel) {
  if (channel.bits == 0) return 0;
  const uint64_t max = (uint64_t{1} << channel.bits) - 1;
  const uint64_t value = (pixel >> channel.shift) & max;
  return static_cast<uint8_t>((value * 255 + max / 2) / max);
}

// Entries that the file does not have are black.
std::array<cv::Vec3b, 256> PaletteOf(const PictureBytes& bytes, const BmpLayout& layout) {
  std::array<cv::Vec3b, 256> palette{};
  for (size_t i = 0; i < layout.palette_entries; ++i) {
    const size_t at = layout.palette_at + i * layout.palette_entry_bytes;
    for (int c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(bytes.u8(at + static_cast<size_t>(c)));
  }
  return palette;
}

void WriteFromPalette(const uint8_t* row, unsigned depth, const std::array<cv::Vec3b, 256>& palette,
                      int width, cv::Vec3b* out) {
  const unsigned pixels_of_byte = 8 / depth;
  const unsigned mask = (1U << depth) - 1;
  for (int x = 0; x < width; ++x) {
    const unsigned place = static_cast<unsigned>(x) % pixels_of_byte;
    const unsigned byte = row[static_cast<unsigned>(x) / pixels_of_byte];
    // The first pixel is in the highest bits.
    out[x] = palette[byte >> (8 - depth * (place + 1)) & mask];
  }
}

void WriteFromBits(const uint8_t* row, const BmpLayout& layout, cv::Vec3b* out) {
  const size_t pixel_bytes = layout.depth / 8;
  for (int x = 0; x < layout.width; ++x) {
    uint32_t pixel = 0;
    std::memcpy(&pixel, row + static_cast<size_t>(x) * pixel_bytes, pixel_bytes);
    for (int c = 0; c < 3; ++c) out[x][c] = EightBits(pixel, layout.channels[static_cast<size_t>(c)]);
  }
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeBmp(std::string_view file, const StillWanted& wanted) {
  const absl::StatusOr<BmpLayout> layout = ReadBmpLayout(file);
  if (!layout.ok()) return layout.status();
  const std::array<cv::Vec3b, 256> palette = PaletteOf(PictureBytes(file), *layout);
  const int width = static_cast<int>(layout->width);
  const int height = static_cast<int>(layout->height);
  cv::Mat picture(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    if (absl::Status goes_on = wanted && y % kBmpRowsAtOnce == 0 ? wanted() : absl::OkStatus(); !goes_on.ok())
      return goes_on;
    const int stored = layout->is_bottom_up ? height - 1 - y : y;
    const std::string_view bytes =
        file.substr(layout->pixels_at + static_cast<size_t>(stored) * layout->row_bytes, layout->row_bytes);
    const auto* const row = reinterpret_cast<const uint8_t*>(bytes.data());
    auto* const out = picture.ptr<cv::Vec3b>(y);
    if (layout->depth <= 8) {
      WriteFromPalette(row, layout->depth, palette, width, out);
    } else if (layout->depth == 24) {
      std::memcpy(picture.ptr(y), row, 3 * static_cast<size_t>(width));
    } else {
      WriteFromBits(row, *layout, out);
    }
  }
  return picture;
}

}  // namespace saccade::server

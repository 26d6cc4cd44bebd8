#include <algorithm>
#include <array>
#include <cstring>

#include "server/pictures/bmp_layout.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

// Pixels that are copied before it is asked whether they are still wanted.
constexpr int64_t kBmpPixelsAtOnce = int64_t{1} << 18;

using BmpPalette = std::array<cv::Vec3b, 256>;

// Entries that the file does not have are black.
BmpPalette PaletteOf(const PictureBytes& bytes, const BmpLayout& layout) {
  BmpPalette palette{};
  for (size_t i = 0; i < layout.palette_entries; ++i) {
    const size_t at = layout.palette_at + i * layout.palette_entry_bytes;
    for (int c = 0; c < 3; ++c) palette[i][c] = static_cast<uint8_t>(bytes.u8(at + static_cast<size_t>(c)));
  }
  return palette;
}

// The first pixel of a byte is in its highest bits.
template <int kDepth>
void WriteFromPalette(const uint8_t* row, const BmpPalette& palette, int width, cv::Vec3b* out) {
  constexpr int kPixelsOfByte = 8 / kDepth;
  constexpr int kMask = (1 << kDepth) - 1;
  for (int x = 0; x < width; ++x)
    out[x] = palette[row[x / kPixelsOfByte] >> (8 - kDepth * (x % kPixelsOfByte + 1)) & kMask];
}

template <typename Pixel>
Pixel PixelAt(const uint8_t* row, int x) {
  Pixel pixel;
  std::memcpy(&pixel, row + sizeof(Pixel) * static_cast<size_t>(x), sizeof(Pixel));
  return pixel;
}

// Colours of fewer or more than 8 bits become the nearest with 8. There are no ties, because the largest
// value is odd.
template <typename Pixel>
void WriteFromBits(const uint8_t* row, const BmpLayout& layout, cv::Vec3b* out) {
  const auto width = static_cast<int>(layout.width);
  for (int c = 0; c < 3; ++c) {
    const BmpChannel& channel = layout.channels[static_cast<size_t>(c)];
    if (channel.bits == 8) {
      for (int x = 0; x < width; ++x)
        out[x][c] = static_cast<uint8_t>(PixelAt<Pixel>(row, x) >> channel.shift);
      continue;
    }
    const uint32_t max = channel.bits == 0 ? 0 : ~uint32_t{0} >> (32 - channel.bits);
    const double scale = max == 0 ? 0 : 255.0 / max;
    for (int x = 0; x < width; ++x) {
      const uint32_t value = uint32_t{PixelAt<Pixel>(row, x)} >> channel.shift & max;
      out[x][c] = static_cast<uint8_t>(static_cast<int>(value * scale + 0.5));
    }
  }
}

void WriteRow(const uint8_t* row, const BmpLayout& layout, const BmpPalette& palette, cv::Mat& picture,
              int y) {
  auto* const out = picture.ptr<cv::Vec3b>(y);
  switch (layout.depth) {
    case 1:
      return WriteFromPalette<1>(row, palette, picture.cols, out);
    case 4:
      return WriteFromPalette<4>(row, palette, picture.cols, out);
    case 8:
      return WriteFromPalette<8>(row, palette, picture.cols, out);
    case 16:
      return WriteFromBits<uint16_t>(row, layout, out);
    case 24:
      std::memcpy(picture.ptr(y), row, 3 * static_cast<size_t>(picture.cols));
      return;
    default:
      return WriteFromBits<uint32_t>(row, layout, out);
  }
}

}  // namespace

absl::StatusOr<cv::Mat> DecodeBmp(std::string_view file, const StillWanted& wanted) {
  const absl::StatusOr<BmpLayout> layout = ReadBmpLayout(file);
  if (!layout.ok()) return layout.status();
  const BmpPalette palette = PaletteOf(PictureBytes(file), *layout);
  const int height = static_cast<int>(layout->height);
  const int64_t rows_at_once = std::max<int64_t>(1, kBmpPixelsAtOnce / layout->width);
  cv::Mat picture(height, static_cast<int>(layout->width), CV_8UC3);
  for (int y = 0; y < height; ++y) {
    if (wanted && y % rows_at_once == 0) {
      if (absl::Status goes_on = wanted(); !goes_on.ok()) return goes_on;
    }
    const int stored = layout->is_bottom_up ? height - 1 - y : y;
    const std::string_view row =
        file.substr(layout->pixels_at + static_cast<size_t>(stored) * layout->row_bytes, layout->row_bytes);
    WriteRow(reinterpret_cast<const uint8_t*>(row.data()), *layout, palette, picture, y);
  }
  return picture;
}

}  // namespace saccade::server

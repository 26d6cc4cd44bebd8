// Writes TIFFs with libtiff, in tiles or in strips.
#pragma once

#include <tiffio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace saccade::server {

// How a TIFF is stored.
struct TiffLayout {
  int orientation = ORIENTATION_TOPLEFT;
  int compression = COMPRESSION_ADOBE_DEFLATE;
  int samples = 3;
  bool planes = false;
  int tile = 32;  // 0: strips
  // With other than 8, the pixels are arbitrary.
  int bits = 8;
  int photometric = -1;  // -1: grey or RGB, by the number of samples
};

inline uint8_t ValueAt(int x, int y, int channel) {
  return static_cast<uint8_t>(x * 7 + y * 13 + channel * 90);
}

// A TIFF whose pixels differ from their neighbours.
inline std::string Tiff(const TiffLayout& layout, int width, int height) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("regions_" + std::to_string(getpid()) + ".tif")).string();
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, layout.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, layout.samples);
  const int by_samples = layout.samples == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
  const int photometric = layout.photometric < 0 ? by_samples : layout.photometric;
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, photometric);
  if (photometric == PHOTOMETRIC_YCBCR) TIFFSetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, 1, 1);
  std::vector<uint16_t> colours(size_t{1} << layout.bits);
  if (photometric == PHOTOMETRIC_PALETTE)
    TIFFSetField(tiff, TIFFTAG_COLORMAP, colours.data(), colours.data(), colours.data());
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, layout.planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, layout.compression);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, layout.orientation);
  const int side = layout.tile;
  const int columns = side > 0 ? side : width;
  const int rows = side > 0 ? side : 8;
  if (side > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, side);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, side);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, rows);
  }
  const int samples = layout.planes ? 1 : layout.samples;
  const int row_bytes = (columns * samples * layout.bits + 7) / 8;
  std::vector<uint8_t> part(static_cast<size_t>(rows) * row_bytes);
  for (int plane = 0; plane < (layout.planes ? layout.samples : 1); ++plane) {
    for (int y = 0; y < height; y += rows) {
      for (int x = 0; x < width; x += columns) {
        for (size_t i = 0; i < part.size(); ++i) {
          const int pixel = static_cast<int>(i) / samples;
          part[i] = ValueAt(x + pixel % columns, y + pixel / columns, plane + static_cast<int>(i) % samples);
        }
        if (side > 0) {
          TIFFWriteTile(tiff, part.data(), x, y, 0, static_cast<uint16_t>(plane));
        } else {
          TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, y, static_cast<uint16_t>(plane)), part.data(),
                                std::min(rows, height - y) * row_bytes);
        }
      }
    }
  }
  TIFFClose(tiff);
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(path);
  return bytes;
}

}  // namespace saccade::server

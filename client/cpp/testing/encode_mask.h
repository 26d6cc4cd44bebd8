// Encodes masks in COCO's run lengths, as pycocotools does: the inverse of rle.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cpp/types.h"

namespace saccade::client {

inline std::string EncodeRuns(const std::vector<int64_t>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t number = i > 2 ? runs[i] - runs[i - 2] : runs[i];
    bool more = true;
    while (more) {
      const int bits = static_cast<int>(number & 0x1F);
      number >>= 5;
      more = (bits & 0x10) != 0 ? number != -1 : number != 0;
      text += static_cast<char>('0' + bits + (more ? 0x20 : 0));
    }
  }
  return text;
}

// `pixels` are row by row; non-zero inside the mask.
inline RleMask EncodeMask(int height, int width, const std::vector<uint8_t>& pixels) {
  std::vector<int64_t> runs = {0};
  int64_t area = 0;
  for (int x = 0; x < width; ++x) {
    for (int y = 0; y < height; ++y) {
      const bool inside = pixels[static_cast<size_t>(y) * width + x] != 0;
      if (inside != (runs.size() % 2 == 0)) runs.push_back(0);
      ++runs.back();
      area += inside;
    }
  }
  return {height, width, EncodeRuns(runs), area};
}

}  // namespace saccade::client

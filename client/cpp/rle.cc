#include "client/cpp/rle.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;
// Digits have five bits each: six are enough for every length up to kMaxPixels and for the difference of two.
constexpr int kMaxDigits = 6;

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("mask: ", why));
}

// Reads the next number of the text: little-endian five-bit digits from '0' on, with 0x20 set if more follow,
// in two's complement.
absl::StatusOr<int64_t> ReadNumber(const std::string& text, size_t& at) {
  int64_t number = 0;
  for (int digit = 0; digit < kMaxDigits; ++digit) {
    if (at == text.size()) return Refuse("the run lengths end in the middle of a number");
    const int code = static_cast<unsigned char>(text[at]) - '0';
    if (code < 0 || code > 0x3F) {
      return Refuse(absl::StrCat("byte ", at, " of the run lengths is not a valid COCO digit"));
    }
    ++at;
    number |= static_cast<int64_t>(code & 0x1F) << (5 * digit);
    if ((code & 0x20) != 0) continue;
    const int64_t sign = int64_t{1} << (5 * digit + 4);
    return (number & sign) != 0 ? number - 2 * sign : number;
  }
  return Refuse(absl::StrCat("a run length at byte ", at, " has more than ", kMaxDigits, " digits"));
}

// Returns all runs, starting with zeros. From the fourth run on, the text holds the difference to the last
// run but one.
absl::StatusOr<std::vector<uint32_t>> ReadRuns(const std::string& text, int64_t pixels) {
  std::vector<uint32_t> runs;
  int64_t sum = 0;
  for (size_t at = 0; at < text.size();) {
    const absl::StatusOr<int64_t> number = ReadNumber(text, at);
    if (!number.ok()) return number.status();
    const int64_t run = runs.size() > 2 ? *number + runs[runs.size() - 2] : *number;
    if (run < 0 || run > pixels - sum) {
      return Refuse(absl::StrCat("run ", runs.size(), " is ", run, "; expected 0 to ", pixels - sum,
                                 ", the pixels that are left"));
    }
    sum += run;
    runs.push_back(static_cast<uint32_t>(run));
  }
  if (sum != pixels) {
    return Refuse(absl::StrCat("the run lengths cover ", sum, " pixels; the picture has ", pixels));
  }
  return runs;
}

// Calls visit(column, first row, row after the last) for every piece of a column that is in the mask.
template <typename Visit>
void ForEachPiece(const std::vector<uint32_t>& runs, int64_t height, const Visit& visit) {
  int64_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const int64_t end = at + runs[i];
    while (i % 2 == 1 && at < end) {
      const int64_t column = at / height;
      const int64_t stop = std::min(end, (column + 1) * height);
      visit(column, at - column * height, stop - column * height);
      at = stop;
    }
    at = end;
  }
}

}  // namespace

absl::StatusOr<MaskRegion> DecodeMask(const RleMask& mask) {
  const int64_t pixels = static_cast<int64_t>(mask.height) * mask.width;
  if (mask.height < 1 || mask.width < 1 || pixels > kMaxPixels) {
    return Refuse(absl::StrCat("its size is ", mask.width, "x", mask.height, "; expected 1 to ", kMaxPixels,
                               " pixels"));
  }
  const absl::StatusOr<std::vector<uint32_t>> runs = ReadRuns(mask.counts, pixels);
  if (!runs.ok()) return runs.status();

  int64_t left = mask.width, right = 0, top = mask.height, bottom = 0;
  ForEachPiece(*runs, mask.height, [&](int64_t column, int64_t first, int64_t last) {
    left = std::min(left, column);
    right = std::max(right, column + 1);
    top = std::min(top, first);
    bottom = std::max(bottom, last);
  });
  MaskRegion region;
  if (right == 0) return region;
  region.x = static_cast<int>(left);
  region.y = static_cast<int>(top);
  region.width = static_cast<int>(right - left);
  region.height = static_cast<int>(bottom - top);
  region.pixels.resize(static_cast<size_t>(region.width) * region.height);
  ForEachPiece(*runs, mask.height, [&](int64_t column, int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      region.pixels[(row - top) * region.width + (column - left)] = 255;
    }
  });
  return region;
}

}  // namespace saccade::client

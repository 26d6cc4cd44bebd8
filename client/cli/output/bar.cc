#include "client/cli/output/bar.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::client {
namespace {

constexpr int kBarWidth = 24;

}  // namespace

void PrintShares(Console& console, const std::vector<Share>& shares) {
  int64_t largest = 0;
  for (const Share& share : shares) largest = std::max(largest, share.index);
  const int digits = static_cast<int>(absl::StrCat(largest).size());
  for (const Share& share : shares) {
    const std::string bar = Bar(share.fraction, kBarWidth, console.unicode);
    const int columns =
        static_cast<int>(std::count_if(bar.begin(), bar.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    console.out << absl::StrFormat("  %5.1f%%  ", 100 * share.fraction) << Paint(console, Tone::kBar, bar)
                << std::string(kBarWidth - columns, ' ') << absl::StrFormat("  %*d", digits, share.index);
    if (!share.label.empty()) console.out << "  " << Printable(share.label);
    console.out << '\n';
  }
}

std::string Bar(double fraction, int width, bool unicode) {
  // A NaN, which a broken model may return, draws nothing.
  const double columns = fraction > 0 ? std::min(fraction, 1.0) * width : 0.0;
  if (!unicode) return std::string(std::lround(columns), '#');
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const long eighths = std::lround(columns * 8);
  std::string bar;
  for (long i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

}  // namespace saccade::client

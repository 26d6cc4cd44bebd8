#include "client/cli/output/answer_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/bar.h"
#include "client/cli/output/json.h"
#include "client/cli/output/names.h"
#include "client/cli/output/table.h"

namespace saccade::client {
namespace {

// How many values of an embedding are shown.
constexpr size_t kFirstValues = 6;

void PrintLines(Console& console, const Classification& answer) {
  std::vector<Share> shares;
  for (const ScoredClass& item : answer.classes) {
    shares.push_back({item.index, item.label, item.probability});
  }
  PrintShares(console, shares);
}

std::string MaskText(const Detection& item) {
  std::optional<int64_t> area;
  if (item.mask) area = item.mask->area;
  if (item.mask_picture) area = item.mask_picture->area;
  if (item.mask_polygons) area = item.mask_polygons->area;
  return area ? absl::StrCat("mask ", WithThousands(*area), " px") : "";
}

std::string KeypointsText(const Detection& item) {
  return item.keypoints.empty() ? "" : absl::StrCat(item.keypoints.size(), " keypoints");
}

// What a crop's model says, shortly: "species: robin 93.1%".
std::string CropText(const Crop& crop) {
  std::string text = crop.error;
  if (!crop.classes.empty()) {
    const ScoredClass& best = crop.classes.front();
    text = absl::StrFormat("%s %.1f%%", best.label.empty() ? absl::StrCat(best.index) : best.label,
                           100 * best.probability);
  } else if (!crop.embedding.empty()) {
    text = absl::StrCat(crop.embedding.size(), " values");
  } else if (text.empty()) {
    text = absl::StrCat(crop.detections.size(), " found");
  }
  return absl::StrCat(crop.model, ": ", text);
}

std::string CropsText(const std::vector<Crop>& crops) {
  return absl::StrJoin(crops, ", ",
                       [](std::string* out, const Crop& crop) { absl::StrAppend(out, CropText(crop)); });
}

void PrintLines(Console& console, const Detections& answer) {
  if (answer.items.empty()) {
    console.out << "  nothing found\n";
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Detection& item : answer.items) {
    rows.push_back({absl::StrFormat("%5.1f%%", 100 * item.score), absl::StrCat(item.class_index), item.label,
                    absl::StrFormat("x %.0f-%.0f", item.box.x_min, item.box.x_max),
                    absl::StrFormat("y %.0f-%.0f", item.box.y_min, item.box.y_max), MaskText(item),
                    KeypointsText(item), CropsText(item.crops)});
  }
  PrintRows(console, {false, true, false, false, false, true, true, false}, rows);
}

void PrintLines(Console& console, const Segmentation& answer) {
  std::vector<Share> shares;
  for (const ClassArea& area : answer.areas) shares.push_back({area.class_index, area.label, area.fraction});
  PrintShares(console, shares);
}

void PrintLines(Console& console, const Disparity& answer) {
  console.out << absl::StrFormat("  disparity %.2f to %.2f px, %.2f in the mean\n", answer.min, answer.max,
                                 answer.mean);
}

void PrintLines(Console& console, const DepthMap& answer) {
  console.out << absl::StrFormat("  depth %g to %g, %g in the mean\n", answer.min, answer.max, answer.mean);
}

// Prints the number of values, the vector's length and its first values.
void PrintLines(Console& console, const Embedding& answer) {
  double squares = 0;
  for (const float value : answer.values) squares += static_cast<double>(value) * value;
  std::string first;
  for (size_t i = 0; i < std::min(answer.values.size(), kFirstValues); ++i)
    absl::StrAppendFormat(&first, " %.4g", answer.values[i]);
  console.out << absl::StrFormat("  %d values of length %.4g:%s%s\n", answer.values.size(),
                                 std::sqrt(squares), first,
                                 answer.values.size() > kFirstValues ? " ..." : "");
}

// Formats minutes and seconds, for example "01:02.3".
std::string Clock(double seconds) {
  // The comparison maps NaN to 0.
  const double shown = seconds > 0 ? std::min(seconds, 1e9) : 0;
  const int64_t tenths = std::llround(shown * 10);
  return absl::StrFormat("%02d:%02d.%d", tenths / 600, tenths / 10 % 60, tenths % 10);
}

void PrintLines(Console& console, const Actions& answer) {
  const std::string clip = absl::StrCat(answer.frames, " frames, ", answer.frames_per_second, " a second");
  if (answer.items.empty()) {
    console.out << "  nothing found in " << clip << '\n';
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Action& item : answer.items) {
    rows.push_back({absl::StrCat(Clock(item.start_seconds), "-", Clock(item.end_seconds)),
                    absl::StrFormat("%5.1f%%", 100 * item.score), absl::StrCat(item.class_index),
                    item.label});
  }
  PrintRows(console, {true, false, true, false}, rows);
  console.out << "  in " << clip << '\n';
}

void PrintLines(Console& console, const Restoration& answer) {
  console.out << absl::StrFormat("  %s, %g to %g\n", NameOf(answer.shape), answer.min, answer.max);
}

void PrintHeading(Console& console, const std::vector<std::string>& files, const Answer& answer) {
  console.out << Paint(console, Tone::kStrong, Printable(absl::StrJoin(files, " ")))
              << Paint(console, Tone::kFaint,
                       Printable(absl::StrFormat(
                           "  %dx%d  %s %d  %.1f ms (infer %.1f, encode %.1f, batch of %d)",
                           answer.picture_width, answer.picture_height, answer.model, answer.version,
                           Milliseconds(answer.timings.round_trip), Milliseconds(answer.timings.infer),
                           Milliseconds(answer.timings.encode), answer.batch_size)))
              << '\n';
}

}  // namespace

void PrintText(Console& console, const Outcome& outcome) {
  std::visit(
      [&](const auto& answer) {
        PrintHeading(console, outcome.files, answer);
        PrintLines(console, answer);
      },
      *outcome.answer);
}

}  // namespace saccade::client

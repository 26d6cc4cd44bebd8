#include "server/encode/label_map.h"

#include "absl/strings/str_cat.h"
#include "server/pictures/png.h"
#include "server/pictures/wanted_rows.h"

namespace saccade::server {
namespace {

absl::Status CheckFilled(const models::Segmentation& result) {
  const int64_t pixels = result.height * result.width;
  if (pixels > 0 && static_cast<int64_t>(result.labels.size()) == pixels) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a label map of ", result.width, " x ", result.height,
                                          " pixels has a wrong number of labels: ", result.labels.size()));
}

}  // namespace

absl::StatusOr<std::string> LabelMapPng(const models::Segmentation& result, const StillWanted& wanted) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  return GreyPng(result.labels.data(), result.height, result.width, wanted);
}

absl::StatusOr<std::string> LabelMapBytes(const models::Segmentation& result, const StillWanted& wanted) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  const auto* const labels = reinterpret_cast<const char*>(result.labels.data());
  std::string bytes;
  bytes.reserve(result.labels.size());
  const auto append = [&](int64_t begin, int64_t count) {
    bytes.append(labels + begin, static_cast<size_t>(count));
  };
  absl::Status copied = ForWantedPieces(result.height * result.width, wanted, append);
  if (!copied.ok()) return copied;
  return bytes;
}

}  // namespace saccade::server

#include "server/encode/label_map.h"

#include "absl/strings/str_cat.h"
#include "server/pictures/png.h"

namespace saccade::server {
namespace {

absl::Status CheckFilled(const models::Segmentation& result) {
  const int64_t pixels = result.height * result.width;
  if (pixels > 0 && static_cast<int64_t>(result.labels.size()) == pixels) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a label map of ", result.width, " x ", result.height,
                                          " pixels has a wrong number of labels: ", result.labels.size()));
}

}  // namespace

absl::StatusOr<std::string> LabelMapPng(const models::Segmentation& result) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  return GreyPng(result.labels.data(), result.height, result.width);
}

absl::StatusOr<std::string> LabelMapBytes(const models::Segmentation& result) {
  if (absl::Status filled = CheckFilled(result); !filled.ok()) return filled;
  return std::string(result.labels.begin(), result.labels.end());
}

}  // namespace saccade::server

#include "server/quantize/take_labelled.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/samples.h"
#include "server/quantize/folder_files.h"

namespace saccade::server {

absl::StatusOr<std::vector<LabelledItem>> TakeLabelled(const std::string& folder,
                                                       std::vector<MaybeLabelled> items,
                                                       const std::string& expected, std::ostream& warnings) {
  std::vector<LabelledItem> labelled;
  std::vector<std::string> pictures;
  std::vector<std::string> others;
  for (MaybeLabelled& one : items) {
    const std::string& file = one.item.files.front();
    if (one.has_label) {
      labelled.push_back(std::move(one.item));
    } else {
      (IsPictureFile(file) ? pictures : others).push_back(file);
    }
  }
  if (!others.empty()) warnings << LeftOutLine("files that are no pictures", others.size(), others.front());
  if (pictures.empty()) return labelled;
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": pictures without a label: ", pictures.size(), ", the first is ", FileName(pictures.front()),
      "; expected ", expected, ". Add the labels, or move these pictures out of the folder"));
}

}  // namespace saccade::server

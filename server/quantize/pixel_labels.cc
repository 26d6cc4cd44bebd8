#include "server/quantize/pixel_labels.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/quantize/folder_files.h"
#include "server/quantize/take_labelled.h"

namespace saccade::server {
namespace {

struct TruthFile {
  std::string path;
  bool has_picture = false;
};

// The files by their names without extensions.
using TruthFiles = std::map<std::string, TruthFile>;

absl::Status CheckOwnFolder(const std::string& pictures, const std::string& labels, const PixelLabels& kind) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(labels, error);
  const bool is_same = is_folder && std::filesystem::equivalent(pictures, labels, error);
  if (is_folder && !is_same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(labels, is_same ? ": is the folder of the pictures" : ": is no folder",
                   "; expected a folder of its own with ", kind.what, " that have the pictures' names"));
}

absl::StatusOr<TruthFiles> ReadTruthFiles(const std::string& labels, const PixelLabels& kind,
                                          std::ostream& warnings) {
  const auto files = FilesIn(labels);
  if (!files.ok()) return files.status();
  TruthFiles truths;
  std::vector<std::string> others;
  for (const std::string& file : *files) {
    const std::string extension = absl::AsciiStrToLower(std::filesystem::path(file).extension().string());
    if (std::find(kind.extensions.begin(), kind.extensions.end(), extension) == kind.extensions.end()) {
      others.push_back(file);
      continue;
    }
    const auto [place, is_new] = truths.try_emplace(FileStem(file), TruthFile{.path = file});
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has the name of ", FileName(place->second.path),
                     "; expected one file for each picture. Remove one of them"));
  }
  if (!others.empty())
    warnings << LeftOutLine(absl::StrCat("files that are no ", kind.what), others.size(), others.front());
  return truths;
}

absl::Status CheckAllHavePictures(const TruthFiles& truths, const std::string& pictures,
                                  const std::string& labels, const PixelLabels& kind,
                                  const models::ImageInput& input) {
  const auto is_alone = [](const auto& one) { return !one.second.has_picture; };
  const auto first = std::find_if(truths.begin(), truths.end(), is_alone);
  if (first == truths.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      labels, ": ", kind.what, " without a picture: ", std::count_if(truths.begin(), truths.end(), is_alone),
      ", the first is ", FileName(first->second.path), "; expected the name of a ",
      input.views == 1 ? "" : "left ", "picture in ", pictures,
      ". Rename or remove these files, or add the pictures"));
}

}  // namespace

absl::StatusOr<std::vector<LabelledItem>> LabelByFiles(const std::string& pictures, const std::string& labels,
                                                       const PixelLabels& kind,
                                                       const models::ImageInput& input,
                                                       std::ostream& warnings) {
  if (absl::Status own = CheckOwnFolder(pictures, labels, kind); !own.ok()) return own;
  auto listed = ListItems(pictures, input, warnings);
  if (!listed.ok()) return listed.status();
  auto truths = ReadTruthFiles(labels, kind, warnings);
  if (!truths.ok()) return truths.status();
  std::vector<MaybeLabelled> items;
  for (ItemFiles& files : *listed) {
    const auto found = truths->find(FileStem(files.front()));
    const bool has_label = found != truths->end();
    if (has_label) found->second.has_picture = true;
    items.push_back(
        {.item = {.files = std::move(files), .label = -1, .truth = has_label ? found->second.path : ""},
         .has_label = has_label});
  }
  if (absl::Status all = CheckAllHavePictures(*truths, pictures, labels, kind, input); !all.ok()) return all;
  return TakeLabelled(pictures, std::move(items),
                      absl::StrCat("a file of the same name for each in ", labels), warnings);
}

}  // namespace saccade::server

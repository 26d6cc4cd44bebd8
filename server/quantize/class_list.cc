#include "server/quantize/class_list.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/api/text.h"
#include "server/engine/samples.h"
#include "server/quantize/folder_files.h"
#include "server/quantize/label_lines.h"
#include "server/quantize/take_labelled.h"

namespace saccade::server {
namespace {

// The lines that name no file of the folder.
struct Strangers {
  size_t count = 0;
  LabelLine first;
};

absl::Status NoPictures(const std::string& folder, const std::string& list, const Strangers& strangers) {
  return absl::InvalidArgumentError(
      absl::StrCat(list, ": labels without a picture: ", strangers.count, ", the first is of ",
                   models::Quote(strangers.first.file), " in line ", strangers.first.number,
                   "; expected names of files in ", folder, ". Remove these lines, or add the pictures"));
}

// Returns the class of each folder.
absl::StatusOr<std::vector<int64_t>> ClassesOf(const std::string& folder,
                                               const std::vector<std::string>& folders,
                                               const ClassNames& classes, std::ostream& warnings) {
  std::vector<int64_t> found;
  size_t unknown = 0;
  absl::Status first;
  for (const std::string& one : folders) {
    const auto index = classes.Find(FileName(one));
    if (!index.ok()) {
      first.Update(index.status());
      ++unknown;
    }
    found.push_back(index.value_or(static_cast<int64_t>(found.size())));
  }
  if (unknown == 0) return found;
  const bool are_all = unknown == folders.size() && static_cast<int64_t>(unknown) == classes.classes();
  if (!are_all) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": a folder stands for each class, but for one of them ", first.message(),
                     ", or ", classes.classes(), " folders in the order of the classes, and found ",
                     folders.size(), ". Rename the folder, or move it elsewhere"));
  }
  warnings << "saccade quantize: no folder of " << folder
           << " has the name of a class of the model: they are taken as its classes in the order of their "
              "names, the first is "
           << FileName(folders.front()) << "\n";
  return found;
}

}  // namespace

absl::StatusOr<std::vector<LabelledItem>> LabelByList(const std::string& folder, const std::string& list,
                                                      const ClassNames& classes, std::ostream& warnings) {
  const auto files = FilesIn(folder);
  if (!files.ok()) return files.status();
  const auto read = ReadLabelLines(list);
  if (!read.ok()) return read.status();
  std::vector<MaybeLabelled> items;
  std::map<std::string, size_t> by_name;
  for (const std::string& file : *files) {
    by_name[FileName(file)] = items.size();
    items.push_back({.item = {.files = {file}, .label = -1, .truth = ""}});
  }
  Strangers strangers;
  for (const LabelLine& line : read->lines) {
    const auto index = classes.Find(line.label);
    const auto place = by_name.find(line.file);
    const bool is_first = &line == &read->lines.front();
    if (is_first && read->is_csv && place == by_name.end() && !index.ok()) continue;
    if (place == by_name.end()) {
      if (strangers.count++ == 0) strangers.first = line;
      continue;
    }
    const std::string where = absl::StrCat(list, ", line ", line.number, ": ");
    if (!index.ok()) return absl::InvalidArgumentError(absl::StrCat(where, index.status().message()));
    MaybeLabelled& one = items[place->second];
    if (one.has_label) {
      return absl::InvalidArgumentError(absl::StrCat(where, "labels ", models::Quote(line.file),
                                                     " a second time; expected one line for each picture"));
    }
    one.has_label = true;
    one.item.label = *index;
  }
  if (strangers.count > 0) return NoPictures(folder, list, strangers);
  return TakeLabelled(folder, std::move(items), absl::StrCat("a line for each in ", list), warnings);
}

absl::StatusOr<std::vector<LabelledItem>> LabelByFolders(const std::string& folder, const ClassNames& classes,
                                                         std::ostream& warnings) {
  const auto folders = FoldersIn(folder);
  if (!folders.ok()) return folders.status();
  if (folders->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder,
                     ": has no folders, but is the pictures' and the labels' folder; expected a folder "
                     "of pictures for each class in it, or a list of labels in --labels"));
  }
  const auto indices = ClassesOf(folder, *folders, classes, warnings);
  if (!indices.ok()) return indices.status();
  std::vector<MaybeLabelled> items;
  // Files beside the folders have no label.
  const auto beside = FilesIn(folder);
  if (!beside.ok()) return beside.status();
  for (const std::string& file : *beside)
    items.push_back({.item = {.files = {file}, .label = -1, .truth = ""}});
  for (size_t i = 0; i < folders->size(); ++i) {
    const auto files = FilesIn((*folders)[i]);
    if (!files.ok()) return files.status();
    if (items.size() + files->size() > kMaxFolderFiles) {
      return absl::InvalidArgumentError(absl::StrCat(folder, ": its folders have more than ", kMaxFolderFiles,
                                                     " files; expected fewer, a part of them is enough"));
    }
    for (const std::string& file : *files) {
      items.push_back(
          {.item = {.files = {file}, .label = (*indices)[i], .truth = ""}, .has_label = IsPictureFile(file)});
    }
  }
  return TakeLabelled(folder, std::move(items), "every picture in the folder of its class", warnings);
}

}  // namespace saccade::server

#include "server/quantize/calibration_items.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/core/clock.h"
#include "server/engine/samples.h"

namespace saccade::server {
namespace {

// More files than any folder of pictures that somebody chose by hand has.
constexpr size_t kMaxFiles = 1'000'000;

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::vector<std::string> files;
  for (; !error && entries != std::filesystem::directory_iterator() && files.size() < kMaxFiles;
       entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_regular_file(ignored) || entries->path().filename().string().front() == '.') continue;
    files.push_back(entries->path().string());
  }
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder, ": cannot be read: ", error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<Item>> ReadCalibrationItems(const std::string& folder,
                                                       const models::ImageInput& input, size_t max_items,
                                                       std::ostream& warnings) {
  const auto files = FilesIn(folder);
  if (!files.ok()) return files.status();
  const auto views = static_cast<size_t>(input.views);
  const size_t there = files->size() / views;
  const size_t wanted = std::min(there, max_items);
  std::vector<Item> items;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t first = i * there / wanted * views;
    auto item = ReadSample(absl::MakeSpan(*files).subspan(first, views), input, Clock::Real());
    if (item.ok()) {
      items.push_back(*std::move(item));
    } else {
      warnings << "saccade quantize: left out: " << item.status().message() << std::endl;
    }
  }
  if (items.size() >= kMinCalibrationItems) return items;
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": has ", items.size(), views == 1 ? " files" : " pairs of files", " that can be used, of ",
      there, "; expected at least ", kMinCalibrationItems, " that stand for what the model will be sent"));
}

}  // namespace saccade::server

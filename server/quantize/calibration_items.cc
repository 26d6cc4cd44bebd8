#include "server/quantize/calibration_items.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/clock.h"
#include "server/engine/samples.h"

namespace saccade::server {
namespace {

// More files than any folder of pictures that somebody chose by hand has.
constexpr size_t kMaxFiles = 1'000'000;
// Bounds the files that are read if most of them cannot be used.
constexpr size_t kTriesPerItem = 16;

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

// Removes up to `count` of `positions`, evenly spread over them, and returns them. Both stay in order.
std::vector<size_t> TakeSpread(std::vector<size_t>& positions, size_t count) {
  const size_t there = positions.size();
  const size_t taking = std::min(count, there);
  std::vector<size_t> taken;
  for (size_t i = 0; i < taking; ++i) taken.push_back(positions[(2 * i + 1) * there / (2 * taking)]);
  std::vector<size_t> left;
  std::set_difference(positions.begin(), positions.end(), taken.begin(), taken.end(),
                      std::back_inserter(left));
  positions = std::move(left);
  return taken;
}

// A line about what is left out.
std::string LeftOut(absl::string_view what, size_t count, absl::string_view first) {
  return absl::StrCat("saccade quantize: left out: ", what, ": ", count, "; the first: ", first, "\n");
}

// Reads up to `max_items` items, in the order of their names and evenly spread. For each that cannot be used,
// tries another one, as often as kTriesPerItem allows.
class Chooser {
 public:
  Chooser(absl::Span<const std::vector<std::string>> items, const models::ImageInput& input, size_t max_items)
      : all_(items), input_(input), wanted_(std::min(items.size(), max_items)), untried_(items.size()) {
    std::iota(untried_.begin(), untried_.end(), size_t{0});
  }

  std::vector<Item> Read() {
    while (chosen_.size() < wanted_ && !untried_.empty() && tried() < kTriesPerItem * wanted_) {
      const size_t missing = wanted_ - chosen_.size();
      for (const size_t position : TakeSpread(untried_, missing)) Try(position);
    }
    std::vector<Item> items;
    for (auto& [position, item] : chosen_) items.push_back(std::move(item));
    return items;
  }

  // The number of items that were tried.
  size_t tried() const { return all_.size() - untried_.size(); }
  // Why those that were tried and cannot be used cannot, by position.
  const std::map<size_t, std::string>& unusable() const { return unusable_; }

 private:
  void Try(size_t position) {
    auto item = ReadSample(all_[position], input_, Clock::Real());
    if (item.ok()) {
      chosen_[position] = *std::move(item);
    } else {
      unusable_[position] = std::string(item.status().message());
    }
  }

  const absl::Span<const std::vector<std::string>> all_;
  const models::ImageInput& input_;
  const size_t wanted_;
  std::vector<size_t> untried_;
  std::map<size_t, Item> chosen_;
  std::map<size_t, std::string> unusable_;
};

}  // namespace

absl::StatusOr<std::vector<Item>> ReadCalibrationItems(const std::string& folder,
                                                       const models::ImageInput& input, size_t max_items,
                                                       std::ostream& warnings) {
  const auto files = FilesIn(folder);
  if (!files.ok()) return files.status();
  const auto divided = DivideIntoItems(*files, input);
  if (!divided.ok())
    return absl::InvalidArgumentError(absl::StrCat(folder, ": ", divided.status().message()));
  if (const auto& others = divided->no_pictures; !others.empty())
    warnings << LeftOut("files that are no pictures", others.size(), others.front());
  Chooser chooser(divided->items, input, max_items);
  std::vector<Item> items = chooser.Read();
  const std::string what = input.views == 1 ? "files" : "pairs of files";
  if (const auto& unusable = chooser.unusable(); !unusable.empty()) {
    warnings << LeftOut(absl::StrCat(what, " that cannot be used"), unusable.size(),
                        unusable.begin()->second);
  }
  warnings.flush();
  if (items.size() >= kMinCalibrationItems) return items;
  const bool tried_all = chooser.tried() == divided->items.size();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": has ", items.size(), " ", what, " that can be used, of ", chooser.tried(),
                   tried_all ? "" : " that were tried", "; expected at least ", kMinCalibrationItems,
                   " that stand for what the model will be sent"));
}

}  // namespace saccade::server

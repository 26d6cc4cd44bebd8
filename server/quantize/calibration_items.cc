#include "server/quantize/calibration_items.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/core/clock.h"
#include "server/engine/samples.h"
#include "server/quantize/folder_files.h"
#include "server/quantize/spread.h"

namespace saccade::server {
namespace {

// Bounds the files that are read if most of them cannot be used.
constexpr size_t kTriesPerItem = 16;

// Reads up to `max_items` items, in the order of their names and evenly spread. For each that cannot be used,
// tries another one, as often as kTriesPerItem allows.
class Chooser {
 public:
  Chooser(absl::Span<const ItemFiles> items, const models::ImageInput& input, size_t max_items)
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

  const absl::Span<const ItemFiles> all_;
  const models::ImageInput& input_;
  const size_t wanted_;
  std::vector<size_t> untried_;
  std::map<size_t, Item> chosen_;
  std::map<size_t, std::string> unusable_;
};

}  // namespace

absl::StatusOr<std::vector<ItemFiles>> ListItems(const std::string& folder, const models::ImageInput& input,
                                                 std::ostream& warnings) {
  const auto files = FilesIn(folder);
  if (!files.ok()) return files.status();
  auto divided = DivideIntoItems(*files, input);
  if (!divided.ok())
    return absl::InvalidArgumentError(absl::StrCat(folder, ": ", divided.status().message()));
  if (const auto& others = divided->no_pictures; !others.empty())
    warnings << LeftOutLine("files that are no pictures", others.size(), others.front());
  return std::move(divided->items);
}

absl::StatusOr<std::vector<Item>> ReadCalibrationItems(const std::string& folder,
                                                       absl::Span<const ItemFiles> all,
                                                       const models::ImageInput& input, size_t max_items,
                                                       std::ostream& warnings) {
  Chooser chooser(all, input, max_items);
  std::vector<Item> items = chooser.Read();
  const std::string what = input.views == 1 ? "files" : "pairs of files";
  if (const auto& unusable = chooser.unusable(); !unusable.empty()) {
    warnings << LeftOutLine(absl::StrCat(what, " that cannot be used"), unusable.size(),
                            unusable.begin()->second);
  }
  warnings.flush();
  if (items.size() >= kMinCalibrationItems) return items;
  const bool tried_all = chooser.tried() == all.size();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": has ", items.size(), " ", what, " that can be used, of ", chooser.tried(),
                   tried_all ? "" : " that were tried", "; expected at least ", kMinCalibrationItems,
                   " that stand for what the model will be sent"));
}

}  // namespace saccade::server

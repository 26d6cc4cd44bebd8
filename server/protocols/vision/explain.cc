#include "server/protocols/vision/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/errors.h"
#include "server/decode/visible_region.h"
#include "server/pictures/png.h"
#include "server/protocols/vision/errors.h"

namespace saccade::server {
namespace {

constexpr int kMaxMaps = 64;
constexpr int kDefaultMaps = 16;
constexpr int kMaxPositions = 16;
// Maximum length of a client's text in an error.
constexpr size_t kMaxShown = 100;

absl::Status SetMap(const models::AttentionMap& map, v1::AttentionMap* message) {
  const auto [min, max] = std::minmax_element(map.values.begin(), map.values.end());
  const float range = *max - *min;
  std::vector<uint8_t> grey(map.values.size());
  std::transform(map.values.begin(), map.values.end(), grey.begin(), [&, low = *min](float value) {
    return static_cast<uint8_t>(range > 0 ? std::lround(255 * ((value - low) / range)) : 0);
  });
  auto png = GreyPng(grey.data(), map.height, map.width);
  if (!png.ok()) return png.status();
  message->set_name(map.name);
  message->set_width(static_cast<int32_t>(map.width));
  message->set_height(static_cast<int32_t>(map.height));
  message->set_png(*std::move(png));
  message->set_min(*min);
  message->set_max(*max);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckExplain(const v1::Explain& message) {
  if (message.max_maps() < 0 || message.max_maps() > kMaxMaps) {
    return InvalidField("explain.max_maps",
                        absl::StrCat("is ", message.max_maps(), "; expected 0 to ", kMaxMaps));
  }
  if (message.positions_size() > kMaxPositions) {
    return InvalidField("explain.positions", absl::StrCat("has ", message.positions_size(),
                                                          " entries; expected at most ", kMaxPositions));
  }
  for (int i = 0; i < message.positions_size(); ++i) {
    const v1::Position& position = message.positions(i);
    // False for NaN.
    const auto within = [](float side) { return side >= 0 && side <= 1; };
    if (within(position.x()) && within(position.y())) continue;
    return InvalidField(
        absl::StrCat("explain.positions[", i, "]"),
        absl::StrCat("is ", position.x(), ", ", position.y(),
                     "; expected 0 to 1 each, from the left or top edge to the right or bottom one"));
  }
  return absl::OkStatus();
}

absl::Status CheckExplainFits(const v1::PredictRequest& message, const models::Description& model) {
  if (!message.has_explain()) return absl::OkStatus();
  const std::vector<std::string>& layers = model.attention_layers;
  if (layers.empty()) {
    return InvalidField("explain", absl::StrCat("model '", message.model(),
                                                "' has no attention maps; "
                                                "omit the field"));
  }
  if (message.explain().positions_size() > 0 && !model.attention_by_position) {
    return InvalidField(
        "explain.positions",
        absl::StrCat("are only supported for attention with a map per position, which model '",
                     message.model(), "' does not have; omit them"));
  }
  const std::string& asked = message.explain().layer();
  if (asked.empty() || std::find(layers.begin(), layers.end(), asked) != layers.end())
    return absl::OkStatus();
  return InvalidField("explain.layer",
                      absl::StrCat("is ", Shown(asked), "; model '", message.model(), "' has ",
                                   absl::StrJoin(layers, ", "), "; leave it empty for the last one"));
}

models::ExplanationWish WishOf(const v1::Explain& message) {
  models::ExplanationWish wish{.layer = message.layer(),
                               .max_maps = message.max_maps() == 0 ? kDefaultMaps : message.max_maps()};
  if (message.positions().empty()) return wish;
  wish.positions.clear();
  for (const v1::Position& position : message.positions())
    wish.positions.push_back({position.x(), position.y()});
  return wish;
}

absl::Status SetExplanation(const models::Explanation& explanation, v1::Explanation* message) {
  message->set_layer(explanation.layer);
  message->set_available(static_cast<int32_t>(explanation.available));
  for (const models::AttentionMap& map : explanation.maps) {
    if (absl::Status set = SetMap(map, message->add_maps()); !set.ok()) return set;
  }
  return absl::OkStatus();
}

void SetSeen(const models::ImageInput& input, const SentItem& sent, v1::Explanation* message) {
  const Region whole{.x = 0, .y = 0, .width = sent.width, .height = sent.height};
  const Region& shown = sent.region ? *sent.region : whole;
  const VisibleRegion part = VisibleRegionOf(input, {.height = shown.height, .width = shown.width});
  v1::PicturePart* const seen = message->mutable_seen();
  seen->set_x(static_cast<float>(shown.x + part.x));
  seen->set_y(static_cast<float>(shown.y + part.y));
  seen->set_width(static_cast<float>(part.width));
  seen->set_height(static_cast<float>(part.height));
}

}  // namespace saccade::server

#include "client/cli/output/detection_formats.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/drawing/outline.h"
#include "client/cli/output/json.h"

namespace saccade::client {
namespace {

using Json = nlohmann::ordered_json;

// Least score of a keypoint that counts as visible.
constexpr float kVisibleFrom = 0.5F;

std::vector<int64_t> ImageIds(const std::vector<Outcome>& outcomes) {
  std::vector<int64_t> numbers, places;
  std::set<int64_t> distinct;
  for (const Outcome& outcome : outcomes) {
    places.push_back(static_cast<int64_t>(places.size()));
    const std::string stem = std::filesystem::path(outcome.files.front()).stem().string();
    int64_t number = 0;
    const bool digits = std::all_of(stem.begin(), stem.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (digits && absl::SimpleAtoi(stem, &number) && distinct.insert(number).second) {
      numbers.push_back(number);
    }
  }
  return numbers.size() == outcomes.size() ? numbers : places;
}

// Differences are computed as floats, too, so that they print with as few digits.
Json Number(float value) { return Shortest(value); }

// Adds COCO's x, y, v of each point: v is 2 (visible) from a score of 0.5 on, 1 below, and 0 for a point
// without a score, whose x and y are 0 then.
void AddKeypoints(const std::vector<Keypoint>& points, Json& json) {
  if (points.empty()) return;
  int labelled = 0;
  Json flat = Json::array();
  for (const Keypoint& point : points) {
    const int visible = point.score >= kVisibleFrom ? 2 : point.score > 0 ? 1 : 0;
    flat.push_back(visible > 0 ? Number(point.x) : Json(0));
    flat.push_back(visible > 0 ? Number(point.y) : Json(0));
    flat.push_back(visible);
    if (visible > 0) ++labelled;
  }
  json["keypoints"] = std::move(flat);
  json["num_keypoints"] = labelled;
}

Json ToCoco(const Detection& item, int64_t image_id) {
  const Box& box = item.box;
  Json json = {
      {"image_id", image_id},
      {"category_id", item.class_index},
      {"bbox",
       {Number(box.x_min), Number(box.y_min), Number(box.x_max - box.x_min), Number(box.y_max - box.y_min)}},
      {"score", Number(item.score)}};
  if (item.mask) {
    json["segmentation"] = {{"size", {item.mask->height, item.mask->width}}, {"counts", item.mask->counts}};
  }
  AddKeypoints(item.keypoints, json);
  return json;
}

Json Points(const Detection& item) {
  std::vector<OutlinePoint> outline = OutlineOf(*item.mask);
  // supervision rejects a picture with several detections of which one has no polygon: a polygon without area
  // stands for a mask that is empty or cannot be decoded.
  if (outline.empty()) {
    const OutlinePoint centre{static_cast<int>((item.box.x_min + item.box.x_max) / 2),
                              static_cast<int>((item.box.y_min + item.box.y_max) / 2)};
    outline = {centre};
  }
  while (outline.size() < 3) outline.push_back(outline.back());
  Json points = Json::array();
  for (const OutlinePoint& point : outline) points.push_back({{"x", point.x}, {"y", point.y}});
  return points;
}

Json ToRoboflow(const Detection& item, const std::string& id) {
  const Box& box = item.box;
  Json json = {{"x", Number((box.x_min + box.x_max) / 2)},
               {"y", Number((box.y_min + box.y_max) / 2)},
               {"width", Number(box.x_max - box.x_min)},
               {"height", Number(box.y_max - box.y_min)},
               {"confidence", Number(item.score)},
               {"class", item.label.empty() ? absl::StrCat(item.class_index) : item.label},
               {"class_id", item.class_index},
               {"detection_id", id}};
  if (item.mask) json["points"] = Points(item);
  return json;
}

}  // namespace

Json CocoResults(const std::vector<Outcome>& outcomes) {
  const std::vector<int64_t> ids = ImageIds(outcomes);
  Json results = Json::array();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].answer.ok()) continue;
    for (const Detection& item : std::get<Detections>(*outcomes[i].answer).items) {
      results.push_back(ToCoco(item, ids[i]));
    }
  }
  return results;
}

Json RoboflowPredictions(const std::vector<Outcome>& outcomes) {
  Json all = Json::array();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].answer.ok()) continue;
    const Detections& answer = std::get<Detections>(*outcomes[i].answer);
    Json one = {{"image", {{"width", answer.picture_width}, {"height", answer.picture_height}}},
                {"predictions", Json::array()}};
    for (size_t j = 0; j < answer.items.size(); ++j) {
      one["predictions"].push_back(ToRoboflow(answer.items[j], absl::StrCat(i, ".", j)));
    }
    all.push_back(std::move(one));
  }
  if (outcomes.size() == 1 && all.size() == 1) return all.front();
  return all;
}

}  // namespace saccade::client

#include "client/cli/output/document.h"

#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "client/cli/output/detection_formats.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/names.h"

namespace saccade::client {
namespace {

using Json = nlohmann::ordered_json;

Json TimingsJson(const Timings& timings) {
  return {{"decode", Milliseconds(timings.decode)}, {"queue", Milliseconds(timings.queue)},
          {"infer", Milliseconds(timings.infer)},   {"encode", Milliseconds(timings.encode)},
          {"total", Milliseconds(timings.total)},   {"round_trip", Milliseconds(timings.round_trip)}};
}

Json ClassesOf(const std::vector<ScoredClass>& classes) {
  Json json = Json::array();
  for (const ScoredClass& item : classes) {
    json.push_back(
        {{"index", item.index}, {"label", item.label}, {"probability", Shortest(item.probability)}});
  }
  return json;
}

Json ValuesOf(const std::vector<float>& values) {
  Json json = Json::array();
  for (const float value : values) json.push_back(Shortest(value));
  return json;
}

void AddResult(const Classification& answer, Json& json) { json["classes"] = ClassesOf(answer.classes); }

// Uses the field names of the API; bytes are in base64, as in the API's JSON.
void AddMask(const Detection& item, Json& json) {
  if (item.mask) {
    json["mask"] = {{"size", {item.mask->height, item.mask->width}},
                    {"counts", item.mask->counts},
                    {"area", item.mask->area}};
  }
  if (item.mask_picture) {
    const MaskPicture& mask = *item.mask_picture;
    json["mask_picture"] = {{"x", mask.x},
                            {"y", mask.y},
                            {"width", mask.width},
                            {"height", mask.height},
                            {"png", absl::Base64Escape(mask.png)},
                            {"area", mask.area}};
  }
  if (item.mask_polygons) {
    Json polygons = Json::array();
    for (const MaskPolygon& polygon : item.mask_polygons->polygons)
      polygons.push_back({{"points", polygon.points}, {"hole", polygon.hole}});
    json["mask_polygons"] = {{"polygons", std::move(polygons)}, {"area", item.mask_polygons->area}};
  }
}

Json DetectionsOf(const std::vector<Detection>& detections);

// NOLINTNEXTLINE(misc-no-recursion): see DetectionsOf()
Json CropOf(const Crop& crop) {
  Json json = {{"model", crop.model},
               {"version", crop.version},
               {"region",
                {{"x", crop.region.x},
                 {"y", crop.region.y},
                 {"width", crop.region.width},
                 {"height", crop.region.height}}}};
  if (!crop.error.empty()) {
    json["error"] = crop.error;
  } else if (!crop.classes.empty()) {
    json["classes"] = ClassesOf(crop.classes);
  } else if (!crop.embedding.empty()) {
    json["embedding"] = ValuesOf(crop.embedding);
  } else {
    json["detections"] = DetectionsOf(crop.detections);
  }
  return json;
}

// Detections may have crops, and these detections again: as deep as messages are parsed.
// NOLINTNEXTLINE(misc-no-recursion)
Json DetectionsOf(const std::vector<Detection>& detections) {
  Json json = Json::array();
  for (const Detection& item : detections) {
    Json added = {{"class_index", item.class_index},
                  {"label", item.label},
                  {"score", Shortest(item.score)},
                  {"box",
                   {{"x_min", Shortest(item.box.x_min)},
                    {"y_min", Shortest(item.box.y_min)},
                    {"x_max", Shortest(item.box.x_max)},
                    {"y_max", Shortest(item.box.y_max)}}}};
    AddMask(item, added);
    for (const Keypoint& point : item.keypoints) {
      added["keypoints"].push_back(
          {{"x", Shortest(point.x)}, {"y", Shortest(point.y)}, {"score", Shortest(point.score)}});
    }
    for (const Crop& crop : item.crops) added["crops"].push_back(CropOf(crop));
    json.push_back(std::move(added));
  }
  return json;
}

void AddResult(const Detections& answer, Json& json) { json["detections"] = DetectionsOf(answer.items); }

void AddResult(const Segmentation& answer, Json& json) {
  json["areas"] = Json::array();
  for (const ClassArea& area : answer.areas) {
    json["areas"].push_back({{"class_index", area.class_index},
                             {"label", area.label},
                             {"pixels", area.pixels},
                             {"fraction", Shortest(area.fraction)}});
  }
}

Json MapJson(const Disparity& answer) {
  return {{"width", answer.width},
          {"height", answer.height},
          {"min", Shortest(answer.min)},
          {"max", Shortest(answer.max)},
          {"mean", Shortest(answer.mean)}};
}

void AddResult(const Disparity& answer, Json& json) { json["disparity"] = MapJson(answer); }

void AddResult(const DepthMap& answer, Json& json) { json["depth"] = MapJson(answer); }

void AddResult(const Embedding& answer, Json& json) { json["embedding"] = ValuesOf(answer.values); }

void AddResult(const Actions& answer, Json& json) {
  json["clip"] = {{"frames", answer.frames}, {"frames_per_second", answer.frames_per_second}};
  json["actions"] = Json::array();
  for (const Action& item : answer.items) {
    json["actions"].push_back({{"class_index", item.class_index},
                               {"label", item.label},
                               {"score", Shortest(item.score)},
                               {"start_seconds", item.start_seconds},
                               {"end_seconds", item.end_seconds},
                               {"start_frame", Shortest(item.start_frame)},
                               {"end_frame", Shortest(item.end_frame)}});
  }
}

void AddResult(const Restoration& answer, Json& json) {
  json["volume"] = {{"depth", answer.shape.depth}, {"height", answer.shape.height},
                    {"width", answer.shape.width}, {"type", NameOf(answer.shape.type)},
                    {"min", Shortest(answer.min)}, {"max", Shortest(answer.max)}};
}

Json ToJson(const Explanation& explanation) {
  Json json = {{"layer", explanation.layer}, {"available", explanation.available}, {"maps", Json::array()}};
  for (const AttentionMap& map : explanation.maps) {
    json["maps"].push_back({{"name", map.name},
                            {"width", map.width},
                            {"height", map.height},
                            {"min", Shortest(map.min)},
                            {"max", Shortest(map.max)}});
  }
  if (explanation.seen) {
    const PicturePart& seen = *explanation.seen;
    json["seen"] = {{"x", Shortest(seen.x)},
                    {"y", Shortest(seen.y)},
                    {"width", Shortest(seen.width)},
                    {"height", Shortest(seen.height)}};
  }
  return json;
}

Json ToJson(const Outcome& outcome) {
  Json json = {{"file", outcome.files.front()}};
  if (outcome.files.size() == 2) json["right"] = outcome.files.back();
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    json["error"] = {{"code", outcome.unreadable ? "UNREADABLE_FILE" : CodeName(status.code())},
                     {"message", std::string(status.message())}};
    if (outcome.unreadable) json["error"]["file"] = *outcome.unreadable;
    return json;
  }
  std::visit(
      [&json](const auto& answer) {
        json["picture"] = {{"width", answer.picture_width}, {"height", answer.picture_height}};
        json["model_version"] = answer.version;
        AddResult(answer, json);
        if (answer.explanation) json["attention"] = ToJson(*answer.explanation);
        json["timings_ms"] = TimingsJson(answer.timings);
        json["batch_size"] = answer.batch_size;
      },
      *outcome.answer);
  for (const Written& file : outcome.written) json[file.what] = file.path;
  return json;
}

}  // namespace

std::string Document(Format format, const std::string& model, const std::vector<Outcome>& outcomes) {
  if (format == Format::kCoco) return Dump(CocoResults(outcomes));
  if (format == Format::kRoboflow) return Dump(RoboflowPredictions(outcomes));
  Json document = {{"version", 1}, {"model", model}};
  document["results"] = Json::array();
  for (const Outcome& outcome : outcomes) document["results"].push_back(ToJson(outcome));
  return Dump(document);
}

std::string DocumentLine(const std::string& model, const Outcome& outcome) {
  Json line = {{"model", model}};
  line.update(ToJson(outcome));
  return DumpLine(line);
}

}  // namespace saccade::client

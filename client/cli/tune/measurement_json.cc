#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/output/json.h"
#include "client/cli/tune/measurement.h"

namespace saccade::client {
namespace {

using Json = nlohmann::ordered_json;

// Raised by a later form that this program does not know.
constexpr int kForm = 1;

Json ToJson(const BucketTiming& bucket) {
  Json passes = Json::array();
  for (const absl::Duration pass : bucket.passes) passes.push_back(Milliseconds(pass));
  return {{"id", bucket.id},
          {"name", bucket.name},
          {"items", bucket.items},
          {"smallest", bucket.smallest},
          {"largest", bucket.largest},
          {"deviation", bucket.deviation},
          {"passes_ms", std::move(passes)}};
}

BucketTiming BucketFrom(const Json& json) {
  BucketTiming bucket;
  bucket.id = json.at("id").get<int64_t>();
  bucket.name = json.at("name").get<std::string>();
  bucket.items = json.at("items").get<int64_t>();
  bucket.smallest = json.at("smallest").get<int>();
  bucket.largest = json.at("largest").get<int>();
  bucket.deviation = json.at("deviation").get<double>();
  for (const Json& pass : json.at("passes_ms"))
    bucket.passes.push_back(absl::Milliseconds(pass.get<double>()));
  return bucket;
}

Measurement From(const Json& json) {
  Measurement made;
  made.model = json.at("model").get<std::string>();
  made.version = json.at("model_version").get<int64_t>();
  made.precision = json.at("precision").get<std::string>();
  made.timing.instances = json.at("instances").get<int>();
  made.timing.threads = json.at("threads").get<int>();
  made.timing.cores = json.at("cores").get<int>();
  made.timing.max_queue_size = json.at("max_queue_size").get<int64_t>();
  made.timing.model_bytes = json.at("model_bytes").get<int64_t>();
  made.timing.resident_bytes = json.at("resident_bytes").get<int64_t>();
  made.item_bytes = json.at("item_bytes").get<int64_t>();
  made.decode = absl::Milliseconds(json.at("decode_ms").get<double>());
  made.round_trip = absl::Milliseconds(json.at("round_trip_ms").get<double>());
  for (const Json& bucket : json.at("buckets")) made.timing.buckets.push_back(BucketFrom(bucket));
  return made;
}

}  // namespace

std::string ToJsonText(const Measurement& measurement) {
  const ModelTiming& timing = measurement.timing;
  Json document = {{"version", kForm},
                   {"model", measurement.model},
                   {"model_version", measurement.version},
                   {"precision", measurement.precision},
                   {"instances", timing.instances},
                   {"threads", timing.threads},
                   {"cores", timing.cores},
                   {"max_queue_size", timing.max_queue_size},
                   {"model_bytes", timing.model_bytes},
                   {"resident_bytes", timing.resident_bytes},
                   {"item_bytes", measurement.item_bytes},
                   {"decode_ms", Milliseconds(measurement.decode)},
                   {"round_trip_ms", Milliseconds(measurement.round_trip)},
                   {"buckets", Json::array()}};
  for (const BucketTiming& bucket : timing.buckets) document["buckets"].push_back(ToJson(bucket));
  return Dump(document);
}

absl::StatusOr<Measurement> FromJsonText(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("version"))
    return absl::InvalidArgumentError("is not JSON of saccade tune --save");
  if (json["version"] != kForm)
    return absl::InvalidArgumentError(
        absl::StrCat("has version ", json["version"].dump(), "; expected ", kForm, ": save it again"));
  try {
    Measurement made = From(json);
    if (absl::Status sound = CheckMeasurement(made); !sound.ok()) return sound;
    return made;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("lacks a member of saccade tune --save, or has it in another type: ", error.what()));
  }
}

}  // namespace saccade::client

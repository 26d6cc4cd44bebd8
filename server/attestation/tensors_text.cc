#include "server/attestation/tensors_text.h"

#include <nlohmann/json.hpp>

#include "server/core/sha256.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Tensor& tensor) {
  return {{"name", tensor.name}, {"datatype", std::string(NameOf(tensor.type))}, {"shape", tensor.shape}};
}

// ASCII alone, so that every JSON library writes the same.
std::string Text(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

}  // namespace

std::string RequestText(const std::vector<Tensor>& inputs, const std::vector<WantedOutput>& outputs) {
  Json json = {{"inputs", Json::array()}, {"outputs", Json::array()}};
  for (const Tensor& input : inputs) json["inputs"].push_back(ToJson(input));
  for (const WantedOutput& output : outputs)
    json["outputs"].push_back({{"name", output.name}, {"classes", output.classes}});
  return Text(json);
}

std::string AnswerText(const std::vector<Tensor>& outputs) {
  Json json = Json::array();
  for (const Tensor& output : outputs) {
    const std::string sum = Sha256Hex(output.data);
    if (sum.empty()) return "";
    Json described = ToJson(output);
    described["sha256"] = sum;
    json.push_back(std::move(described));
  }
  return Text(json);
}

}  // namespace saccade::server

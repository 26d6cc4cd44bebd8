#include "server/protocols/inference/message_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "inference/grpc_service.pb.h"

namespace saccade::server {
namespace {

using Json = nlohmann::json;

TEST(MessageJson, NumbersAreNumbersAndDefaultsAreThere) {
  inference::ModelConfig config;
  config.set_name("m\"\xff");
  auto* input = config.add_input();
  input->set_name(std::string("x"));
  input->set_data_type(inference::TYPE_FP32);
  input->add_dims(-1);
  input->add_dims(int64_t{1} << 40);
  config.mutable_dynamic_batching()->set_max_queue_delay_microseconds(7);
  (*config.mutable_dynamic_batching()->mutable_priority_queue_policy())[3].set_max_queue_size(9);
  (*config.mutable_parameters())["b"].set_string_value(std::string("2"));
  (*config.mutable_parameters())["a"].set_string_value(std::string("1"));
  const std::string text = ToJson(config);
  EXPECT_LT(text.find("\"a\""), text.find("\"b\""));
  const Json json = Json::parse(text);
  EXPECT_EQ(json["name"], "m\"\xEF\xBF\xBD");
  EXPECT_EQ(json["max_batch_size"], 0);
  EXPECT_EQ(json["input"][0]["data_type"], "TYPE_FP32");
  EXPECT_EQ(json["input"][0]["dims"], Json({-1, int64_t{1} << 40}));
  EXPECT_EQ(json["input"][0]["optional"], false);
  EXPECT_EQ(json["output"], Json::array());
  EXPECT_EQ(json["dynamic_batching"]["max_queue_delay_microseconds"], 7);
  EXPECT_EQ(json["dynamic_batching"]["priority_queue_policy"]["3"]["max_queue_size"], 9);
  EXPECT_EQ(json["parameters"], Json::parse(R"({"a": {"string_value": "1"}, "b": {"string_value": "2"}})"));
  EXPECT_EQ(json["metric_tags"], Json::object());
  // Neither unset messages nor the other members of a oneof are present.
  EXPECT_FALSE(json.contains("response_cache"));
  EXPECT_FALSE(json.contains("sequence_batching"));
}

TEST(MessageJson, EveryTypeOfField) {
  inference::InferTensorContents contents;
  contents.add_bool_contents(true);
  contents.add_int_contents(-1);
  contents.add_int64_contents(int64_t{-1} << 40);
  contents.add_uint_contents(1);
  contents.add_uint64_contents(uint64_t{1} << 63);
  contents.add_fp32_contents(0.5F);
  contents.add_fp64_contents(0.25);
  contents.add_bytes_contents(std::string("x"));
  EXPECT_EQ(Json::parse(ToJson(contents)), Json::parse(R"({
    "bool_contents": [true], "int_contents": [-1], "int64_contents": [-1099511627776], "uint_contents": [1],
    "uint64_contents": [9223372036854775808], "fp32_contents": [0.5], "fp64_contents": [0.25],
    "bytes_contents": ["x"]})"));
  inference::InferParameter parameter;
  EXPECT_EQ(ToJson(parameter), "{}");
  parameter.set_double_param(1.5);
  EXPECT_EQ(ToJson(parameter), R"({"double_param":1.5})");
}

}  // namespace
}  // namespace saccade::server

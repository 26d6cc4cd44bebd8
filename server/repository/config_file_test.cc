#include "server/repository/config_file.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kArchitecture[] = "parameters { key: \"architecture\" value { string_value: \"sanet\" } }\n";

absl::StatusOr<ConfigFile> Parse(const std::string& text) { return ParseConfig(text, "m/config.pbtxt", "m"); }

std::string ErrorOf(const std::string& text) {
  const auto config = Parse(text);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(ConfigFileTest, DefaultsNeedOnlyTheArchitecture) {
  const auto config = Parse(kArchitecture);
  ASSERT_TRUE(config.ok()) << config.status();
  const ModelSettings& settings = config->settings;
  EXPECT_EQ(settings.name, "m");
  EXPECT_EQ(settings.architecture, "sanet");
  EXPECT_THAT(settings.options, IsEmpty());
  EXPECT_EQ(settings.batching.max_batch_size, 8);
  EXPECT_EQ(settings.instances, 1);
  EXPECT_EQ(config->labels_file, "");
  EXPECT_EQ(config->weights_file, "");
}

TEST(ConfigFileTest, EveryFieldArrives) {
  const auto config = Parse(R"pb(
    name: "m"
    backend: "saccade"
    max_batch_size: 1024 instance_group
    [ { count: 2 kind: KIND_CPU }
      , { kind: KIND_AUTO }]
    dynamic_batching { max_queue_delay_microseconds: 500 }
    parameters {
      key: "architecture"
      value { string_value: "sanet" }
    }
    parameters {
      key: "classes"
      value { string_value: "19" }
    }
    parameters {
      key: "labels"
      value { string_value: "names.txt" }
    }
    parameters {
      key: "weights"
      value { string_value: "best.pt" }
    }
  )pb");
  ASSERT_TRUE(config.ok()) << config.status();
  const ModelSettings& settings = config->settings;
  EXPECT_EQ(settings.batching.max_batch_size, 1024);
  EXPECT_EQ(settings.instances, 3);
  EXPECT_EQ(settings.batching.max_queue_delay, absl::Microseconds(500));
  EXPECT_THAT(settings.options, ElementsAre(Pair("classes", "19")));
  EXPECT_EQ(config->labels_file, "names.txt");
  EXPECT_EQ(config->weights_file, "best.pt");
}

TEST(ConfigFileTest, ArchitectureIsRequired) {
  EXPECT_THAT(ErrorOf("max_batch_size: 4"),
              HasSubstr("m/config.pbtxt: parameters['architecture']: is missing"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("string_value: \"sanet\""));
}

TEST(ConfigFileTest, NameAndBackendMustFit) {
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "name: \"other\"")),
              HasSubstr("m/config.pbtxt:2: name: is 'other', but the folder is 'm'"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "backend: \"tensorrt\"")),
              HasSubstr("backend: is 'tensorrt', expected 'saccade', 'pytorch', 'onnxruntime', 'openvino' "
                        "or 'ensemble'"));
}

TEST(ConfigFileTest, TritonsNamesForGraphs) {
  constexpr absl::string_view kTensors =
      " input { name: \"x\" data_type: TYPE_FP32 dims: 3 } output { name: \"y\" data_type: TYPE_FP32 dims: 3 "
      "}";
  const auto backend_of = [&](absl::string_view text) {
    const auto read = ParseConfig(absl::StrCat(text, kTensors), "m/config.pbtxt", "m");
    return read.ok() ? read->settings.backend : Backend::kSaccade;
  };
  EXPECT_EQ(backend_of("platform: \"onnxruntime_onnx\""), Backend::kOnnxruntime);
  EXPECT_EQ(backend_of("backend: \"onnxruntime\""), Backend::kOnnxruntime);
  EXPECT_EQ(backend_of("backend: \"onnxruntime\" platform: \"onnxruntime_onnx\""), Backend::kOnnxruntime);
  EXPECT_EQ(backend_of("backend: \"openvino\""), Backend::kOpenvino);
  EXPECT_THAT(ErrorOf("backend: \"openvino\" platform: \"onnxruntime_onnx\""),
              HasSubstr("platform: is 'onnxruntime_onnx', which contradicts backend 'openvino'"));
}

TEST(ConfigFileTest, TritonsNameForPackages) {
  const std::string tensors =
      " input { name: \"x\" data_type: TYPE_FP32 dims: 3 } output { name: \"y\" data_type: TYPE_FP32 dims: 3 "
      "}";
  for (const char* backend : {"", "backend: \"pytorch\" "}) {
    const auto package = Parse(absl::StrCat(backend, "platform: \"torch_aoti\"", tensors));
    ASSERT_TRUE(package.ok()) << package.status();
    EXPECT_EQ(package->settings.backend, Backend::kPytorch);
    EXPECT_EQ(package->weights_file, "model.pt2");
    EXPECT_THAT(package->settings.config, HasSubstr("torch_aoti"));
  }
  const auto named = Parse("platform: \"torch_aoti\" default_model_filename: \"net.pt2\"" + tensors);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->weights_file, "net.pt2");
  EXPECT_THAT(ErrorOf("platform: \"torch_aoti\" default_model_filename: \"model.pt\"" + tensors),
              HasSubstr("platform: is 'torch_aoti', but the file is 'model.pt', expected a package"));
  EXPECT_THAT(ErrorOf("backend: \"onnxruntime\" platform: \"torch_aoti\"" + tensors),
              HasSubstr("platform: is 'torch_aoti', which contradicts backend 'onnxruntime'"));
}

TEST(ConfigFileTest, AnUnknownFieldIsNamedBesideThoseThatAreKnown) {
  const std::string error = ErrorOf(absl::StrCat(kArchitecture, "  sequence_batches { }"));
  EXPECT_THAT(error, HasSubstr("m/config.pbtxt:2:"));
  EXPECT_THAT(error,
              HasSubstr("field 'sequence_batches' is unknown; remove it (known fields: name, platform, "));
  EXPECT_THAT(error, HasSubstr("in 'sequence_batches { }'"));
}

TEST(ConfigFileTest, NonsenseTellsLineAndText) {
  EXPECT_THAT(ErrorOf("name: \"m\"\nmax_batch_size: many\n"),
              HasSubstr("m/config.pbtxt:2:17: Expected integer, got: many in 'max_batch_size: many'"));
  EXPECT_THAT(ErrorOf("max_batch_size: 99999999999"), HasSubstr("in 'max_batch_size: 99999999999'"));
  EXPECT_THAT(ErrorOf("instance_group { kind: KIND_TPU }"), HasSubstr("KIND_TPU"));
  EXPECT_THAT(ErrorOf("\x01\x02"), HasSubstr("m/config.pbtxt:1:1: "));
}

TEST(ConfigFileTest, NestingIsBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "parameters{value{";
  EXPECT_FALSE(Parse(deep).ok());
}

TEST(ConfigFileTest, NumbersAreBounded) {
  for (const char* size : {"0", "-1", "65537"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "max_batch_size: ", size)),
                HasSubstr(absl::StrCat("max_batch_size: is ", size, ", expected 1 to 65536")));
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "instance_group { count: -1 }")),
              HasSubstr("instance_group[0].count: is -1"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "instance_group { count: 64 } instance_group { }")),
              HasSubstr("instance_group[1].count: is 65 in total, expected 1 to 64"));
}

TEST(ConfigFileTest, InstancesOnGpus) {
  const auto gpus = [](absl::string_view groups) {
    ModelSettings settings = Parse(absl::StrCat(kArchitecture, groups))->settings;
    PlaceOnEveryGpu(2, &settings);
    EXPECT_TRUE(settings.gpus.empty() || static_cast<size_t>(settings.instances) == settings.gpus.size());
    return settings.gpus;
  };
  EXPECT_THAT(gpus(""), IsEmpty());
  EXPECT_THAT(gpus("instance_group { kind: KIND_AUTO }"), IsEmpty());
  EXPECT_THAT(gpus("instance_group { count: 2 kind: KIND_GPU gpus: [ 3 ] }"), ElementsAre(3, 3));
  EXPECT_THAT(gpus("instance_group { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(gpus("instance_group { kind: KIND_GPU gpus: [ 0 ] } instance_group { count: 2 kind: KIND_GPU "
                   "gpus: [ 1 ] }"),
              ElementsAre(0, 1, 1));
  EXPECT_THAT(gpus("instance_group { count: 2 kind: KIND_GPU }"), ElementsAre(0, 1, 0, 1));
  ModelSettings nowhere = Parse(absl::StrCat(kArchitecture, "instance_group { kind: KIND_GPU }"))->settings;
  PlaceOnEveryGpu(0, &nowhere);
  EXPECT_THAT(nowhere.gpus, ElementsAre(0)) << "whose absence is the load's error";

  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "instance_group { gpus: [ 0 ] }")),
              HasSubstr("instance_group[0].gpus: names a GPU, expected kind: KIND_GPU"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "instance_group { kind: KIND_GPU gpus: [ -1 ] }")),
              HasSubstr("instance_group[0].gpus: is -1, expected 0 or more"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kArchitecture, "instance_group { count: 33 kind: KIND_GPU gpus: [ 0, 1 ] }")),
      HasSubstr("instance_group[0].count: is 66 in total, expected 1 to 64"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture,
                                   "instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU }")),
              HasSubstr("instance_group[1]: mixes GPUs and the CPU"));
}

std::string Parameter(absl::string_view key, absl::string_view value) {
  return absl::StrCat("parameters { key: \"", key, "\" value { string_value: \"", value, "\" } }\n");
}

TEST(ConfigFileTest, TheDaemonsOwnParametersAreNotTheArchitectures) {
  const auto config = Parse(absl::StrCat(kArchitecture, Parameter("weight", "2.5"), Parameter("threads", "3"),
                                         Parameter("pin", "true"), Parameter("max_inflight_requests", "10"),
                                         Parameter("max_inflight_bytes", "1000000"),
                                         Parameter("max_decoded_bytes", "5000000000"),
                                         Parameter("max_cache_bytes", "4096"), Parameter("classes", "19")));
  ASSERT_TRUE(config.ok()) << config.status();
  const ModelSettings& settings = config->settings;
  EXPECT_EQ(settings.batching.weight, 2.5);
  EXPECT_EQ(settings.batching.threads, 3);
  EXPECT_TRUE(settings.pin);
  EXPECT_EQ(settings.max_inflight.requests, 10);
  EXPECT_EQ(settings.max_inflight.bytes, 1'000'000);
  EXPECT_EQ(settings.max_inflight.decoded_bytes, 5'000'000'000);
  EXPECT_EQ(settings.max_cached_bytes, 4096);
  EXPECT_THAT(settings.options, ElementsAre(Pair("classes", "19")));

  const auto none = Parse(absl::StrCat(kArchitecture, Parameter("pin", "false")));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->settings.batching.weight, 1);
  EXPECT_EQ(none->settings.batching.threads, 0) << "the daemon's flag";
  EXPECT_FALSE(none->settings.pin);
  EXPECT_FALSE(none->settings.optimize.has_value());
  EXPECT_FALSE(none->settings.has_instances);
  EXPECT_EQ(none->settings.max_inflight.requests, 0) << "only the server's bound";
}

TEST(ConfigFileTest, OptimizeSaysWhatForAndLeavesConfiguredInstances) {
  const auto latency = Parse(absl::StrCat(kArchitecture, Parameter("optimize", "latency")));
  ASSERT_TRUE(latency.ok()) << latency.status();
  EXPECT_EQ(latency->settings.optimize, Optimize::kLatency);
  EXPECT_FALSE(latency->settings.has_instances);
  const auto throughput = Parse(
      absl::StrCat(kArchitecture, Parameter("optimize", "throughput"), "instance_group { count: 1 }\n"));
  ASSERT_TRUE(throughput.ok()) << throughput.status();
  EXPECT_EQ(throughput->settings.optimize, Optimize::kThroughput);
  EXPECT_TRUE(throughput->settings.has_instances);
}

TEST(ConfigFileTest, TheDaemonsOwnParametersAreChecked) {
  const auto error = [](absl::string_view key, absl::string_view value) {
    return ErrorOf(absl::StrCat(kArchitecture, Parameter(key, value)));
  };
  for (const char* weight : {"0", "-1", "nan", "inf", "1001", "heavy", ""}) {
    EXPECT_THAT(error("weight", weight),
                HasSubstr(absl::StrCat("m/config.pbtxt:2: parameters['weight']: is '", weight,
                                       "', expected a number from 0.001")));
  }
  for (const char* threads : {"0", "-1", "1025", "2.5", "many"}) {
    EXPECT_THAT(error("threads", threads), HasSubstr("expected a whole number from 1 to 1024"));
  }
  EXPECT_THAT(error("pin", "yes"),
              HasSubstr("m/config.pbtxt:2: parameters['pin']: is 'yes', expected 'true' or 'false'"));
  for (const char* key :
       {"max_inflight_requests", "max_inflight_bytes", "max_decoded_bytes", "max_cache_bytes"}) {
    EXPECT_THAT(error(key, "0"),
                HasSubstr(absl::StrCat("parameters['", key, "']: is '0', expected a whole")));
  }
}

TEST(ConfigFileTest, FileNamesArePlain) {
  for (const char* name : {"../secret", "/etc/passwd", "", ".hidden", "a/b"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(kArchitecture, "parameters { key: \"labels\" value { string_value: \"",
                                     name, "\" } }")),
                HasSubstr("parameters['labels']: is"));
  }
}

TEST(ConfigFileTest, WhatErrorsQuoteIsCut) {
  const std::string digits(5000, '9');
  const std::string text(5000, 'x');
  for (const std::string& config : {
           absl::StrCat("max_batch_size: ", digits),
           absl::StrCat("max_batch_size: \"", text, "\""),
           absl::StrCat(text, ": 1"),
           absl::StrCat("instance_group { ", text, ": 1 }"),
           absl::StrCat("instance_group { kind: ", text, " }"),
           absl::StrCat("name: \"", text, "\""),
           absl::StrCat("platform: \"", text, "\""),
           absl::StrCat("backend: \"", text, "\""),
           absl::StrCat("default_model_filename: \"../", text, "\""),
           absl::StrCat("default_model_filename: \"", text, "\"\n", Parameter("weights", "w")),
           absl::StrCat("input { name: \"", text, "\" }"),
           absl::StrCat(Parameter("weight", text)),
           absl::StrCat(Parameter("labels", absl::StrCat("../", text))),
           absl::StrCat(Parameter("version_labels", text)),
           absl::StrCat("input { name: \"x\" data_type: TYPE_FP32 dims: 1 } output { name: \"y\" data_type: "
                        "TYPE_FP32 ",
                        "dims: 1 } ensemble_scheduling { step { model_name: \"", text, "\" } }"),
       }) {
    const auto parsed = Parse(absl::StrCat(kArchitecture, config));
    ASSERT_FALSE(parsed.ok()) << config.substr(0, 60);
    EXPECT_LT(parsed.status().message().size(), 1000u) << config.substr(0, 60);
    EXPECT_THAT(std::string(parsed.status().message()), testing::StartsWith("m/config.pbtxt:2"));
  }
}

}  // namespace
}  // namespace saccade::server

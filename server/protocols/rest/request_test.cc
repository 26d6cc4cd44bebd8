#include "server/protocols/rest/request.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_message.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMax = 100'000;
const SharedMemory kNoSharing({});

absl::StatusOr<RestCall> Read(const std::string& json) {
  return ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, kNoSharing,
                         {.max_bytes = kMax});
}

absl::StatusOr<RestCall> ReadBinary(const std::string& json, const std::string& binary) {
  const auto body = std::make_shared<const std::string>(json + binary);
  const std::string length = absl::StrCat(json.size());
  return ReadRestRequest({.bytes = *body, .owner = body, .json_length = length}, kNoSharing,
                         {.max_bytes = kMax});
}

template <typename T>
std::string Why(const absl::StatusOr<T>& read) {
  return read.ok() ? "it was taken" : std::string(read.status().message());
}

std::string InputJson(const std::string& type, const std::string& shape, const std::string& data) {
  return absl::StrCat(R"({"inputs":[{"name":"x","datatype":")", type, R"(","shape":)", shape, R"(,"data":)",
                      data, "}]}");
}

std::string BytesOf(const Tensor& tensor) {
  std::string bytes(tensor.data.size(), 0);
  tensor.data.CopyTo(bytes.data());
  return bytes;
}

template <typename T>
std::vector<T> ValuesOf(const absl::StatusOr<RestCall>& read) {
  if (!read.ok()) {
    ADD_FAILURE() << read.status();
    return {};
  }
  const std::string bytes = BytesOf(read->call.inputs.at(0));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A network thread must not parse a large body because of what the client says of it.
TEST(RestRequestTest, BytesToParseAreThoseOfTheJson) {
  const std::string body(10'000, 'x');
  const auto named = [&](const std::string& length) {
    return RestBytesToParse({{"inference-header-content-length", length}}, body);
  };
  EXPECT_EQ(RestBytesToParse({}, body), body.size());
  EXPECT_EQ(named("0"), 0u);
  EXPECT_EQ(named("37"), 37u);
  EXPECT_EQ(named("10000"), body.size());
  for (const char* wrong : {"", "10001", "-1", "37x", "0x25", "1, 2", "18446744073709551617"})
    EXPECT_EQ(named(wrong), body.size()) << wrong;
  // The length is the one that is read, also if the header stands twice.
  HttpRequest twice;
  twice.headers = {{"Inference-Header-Content-Length", "2"}, {"Inference-Header-Content-Length", "1000"}};
  EXPECT_EQ(RestBytesToParse(twice.headers, body), 2u);
  EXPECT_EQ(twice.Header(kJsonLengthHeader), "2");
}

TEST(RestRequestTest, ElementsOfBytesAreParsed) {
  const auto parsed = [](const std::string& type) {
    const std::string json = absl::StrCat(R"({"inputs":[{"datatype":")", type, R"("}]})");
    const std::string length = absl::StrCat(json.size());
    return RestBytesToParse({{kJsonLengthHeader, length}}, json + std::string(10'000, '\0')) - json.size();
  };
  EXPECT_EQ(parsed("FP32"), 0u);
  EXPECT_EQ(parsed("BYTES"), 10'000u);
  EXPECT_EQ(parsed(R"(\u0042YTES)"), 10'000u);
  EXPECT_EQ(parsed(std::string(5000, 'x')), 10'000u) << "too long to be searched";
}

TEST(RestRequestTest, AWholeRequestIsRead) {
  const auto read = Read(R"({
    "id": "a", "parameters": {"priority": 2, "timeout": 5000, "binary_data_output": true, "other": "x"},
    "unknown": [{"a": [1, {}]}, null],
    "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "parameters": {}, "data": [[1, -2.5], [3e2, 0]]}],
    "outputs": [{"name": "y", "parameters": {"binary_data": false, "classification": 3}}, {"name": "z"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->call.id, "a");
  EXPECT_EQ(read->call.priority, -2);
  EXPECT_EQ(read->call.timeout, absl::Milliseconds(5));
  ASSERT_EQ(read->call.inputs.size(), 1u);
  EXPECT_EQ(read->call.inputs[0].name, "x");
  EXPECT_THAT(read->call.inputs[0].shape, ElementsAre(2, 2));
  EXPECT_THAT(ValuesOf<float>(read), ElementsAre(1, -2.5f, 300, 0));
  ASSERT_EQ(read->call.outputs.size(), 2u);
  EXPECT_EQ(read->call.outputs[0].classes, 3);
  EXPECT_FALSE(read->form.BinaryOf("y"));
  EXPECT_TRUE(read->form.BinaryOf("z"));
}

TEST(RestRequestTest, EveryTypeIsRead) {
  EXPECT_THAT(ValuesOf<uint8_t>(Read(InputJson("BOOL", "[2]", "[true,false]"))), ElementsAre(1, 0));
  EXPECT_THAT(ValuesOf<uint8_t>(Read(InputJson("UINT8", "[2]", "[0,255]"))), ElementsAre(0, 255));
  EXPECT_THAT(ValuesOf<int8_t>(Read(InputJson("INT8", "[2]", "[-128,127]"))), ElementsAre(-128, 127));
  EXPECT_THAT(ValuesOf<uint16_t>(Read(InputJson("UINT16", "[1]", "[65535]"))), ElementsAre(65535));
  EXPECT_THAT(ValuesOf<int16_t>(Read(InputJson("INT16", "[1]", "[-32768]"))), ElementsAre(-32768));
  EXPECT_THAT(ValuesOf<uint32_t>(Read(InputJson("UINT32", "[1]", "[4294967295]"))), ElementsAre(4294967295u));
  EXPECT_THAT(ValuesOf<int32_t>(Read(InputJson("INT32", "[1]", "[-2147483648]"))), ElementsAre(INT32_MIN));
  EXPECT_THAT(ValuesOf<uint64_t>(Read(InputJson("UINT64", "[1]", "[18446744073709551615]"))),
              ElementsAre(UINT64_MAX));
  EXPECT_THAT(
      ValuesOf<int64_t>(Read(InputJson("INT64", "[2]", "[-9223372036854775808,9223372036854775807]"))),
      ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(ValuesOf<double>(Read(InputJson("FP64", "[2]", "[1e300,-1]"))), ElementsAre(1e300, -1));
  EXPECT_THAT(ValuesOf<char>(Read(InputJson("BYTES", "[2]", R"(["ä",""])"))),
              ElementsAre(2, 0, 0, 0, '\xc3', '\xa4', 0, 0, 0, 0));
  EXPECT_THAT(ValuesOf<float>(Read(InputJson("FP32", "[0,3]", "[]"))), IsEmpty());
  EXPECT_THAT(ValuesOf<float>(Read(InputJson("FP32", "[]", "[5]"))), ElementsAre(5));
  EXPECT_THAT(ValuesOf<float>(Read(InputJson("FP32", "[2,0]", "[[],[]]"))), IsEmpty());
  EXPECT_THAT(ValuesOf<float>(Read(InputJson("FP32", "[1,2]", "[1,2]"))), ElementsAre(1, 2));
}

TEST(RestRequestTest, DataMayStandBeforeWhatDescribesThem) {
  const auto read = Read(R"({"inputs":[{"data":[[1],[2]],"shape":[2,1],"name":"x","datatype":"INT32"},
                                       {"name":"y","shape":[1],"data":[3],"datatype":"UINT8"}]})");
  EXPECT_THAT(ValuesOf<int32_t>(read), ElementsAre(1, 2));
  EXPECT_EQ(BytesOf(read->call.inputs.at(1)), "\3");
  EXPECT_THAT(
      Why(Read(R"({"inputs":[{"data":[[1],[2]],"shape":[2,1],"name":"x","datatype":"BOOL"}]})")),
      HasSubstr("input 'x': data: element 0 is 1, which is not a valid BOOL; expected true or false"));
}

TEST(RestRequestTest, NestingDoesNotMatter) {
  const auto flat = Read(InputJson("FP32", "[2,2]", "[1,2,3,4]"));
  ASSERT_TRUE(flat.ok()) << flat.status();
  for (const char* data :
       {"[[1,2,3],[4]]", "[[[1,2],[3,4]]]", "[1,[2,3],4]", "[[],[1,2,3,4]]", "[[[[1]]],2,[3],4]"}) {
    const auto nested = Read(InputJson("FP32", "[2,2]", data));
    ASSERT_TRUE(nested.ok()) << data << " " << nested.status();
    EXPECT_EQ(BytesOf(nested->call.inputs[0]), BytesOf(flat->call.inputs[0])) << data;
  }
}

TEST(RestRequestTest, StringsStandForWhatIsNotFinite) {
  const auto read = Read(InputJson("FP32", "[3]", R"(["NaN","Infinity","-Infinity"])"));
  ASSERT_TRUE(read.ok()) << read.status();
  std::array<float, 3> values;
  read->call.inputs[0].data.CopyTo(reinterpret_cast<char*>(values.data()));
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(values[2], -std::numeric_limits<float>::infinity());
}

TEST(RestRequestTest, AnElementThatDoesNotBelongIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {InputJson("UINT8", "[3]", "[1,2,256]"),
       "input 'x': data: element 2 is 256, which is not a valid UINT8; expected an integer within its range"},
      {InputJson("UINT8", "[1]", "[-1]"), "element 0 is -1, which is not a valid UINT8"},
      {InputJson("UINT64", "[1]", "[-1]"), "element 0 is -1"},
      {InputJson("INT8", "[1]", "[-129]"), "element 0 is -129"},
      {InputJson("INT64", "[1]", "[9223372036854775808]"), "element 0 is 9223372036854775808"},
      {InputJson("INT32", "[1]", "[1.5]"), "element 0 is 1.5, which is not a valid INT32"},
      {InputJson("INT32", "[2]", "[1,\"2\"]"), "element 1 is the string '2'"},
      {InputJson("FP32", "[2]", "[1,1e39]"),
       "element 1 is 1e+39, which is not a valid FP32; expected a number within its range"},
      {InputJson("FP32", "[1]", "[1e999]"), "number overflow"},
      {InputJson("FP32", "[1]", "[true]"), "element 0 is true"},
      {InputJson("FP32", "[1]", "[null]"), "element 0 is null"},
      {InputJson("FP32", "[1]", "[NaN]"), "the request is not valid JSON at byte "},
      {InputJson("BOOL", "[1]", "[1]"), "element 0 is 1, which is not a valid BOOL"},
      {InputJson("BYTES", "[1]", "[1]"), "element 0 is 1, which is not a valid BYTES; expected a string"},
      {InputJson("BYTES", "[1]", "[\"\xff\"]"), "the request is not valid JSON"},
      {InputJson("FP16", "[1]", "[1]"), "FP16 cannot be sent as JSON; send it as binary data"},
      {InputJson("BF16", "[1]", "[1]"), "BF16 cannot be sent as JSON"},
      {InputJson("FP32", "[2]", "[1,2,3]"), "data: has more than the 2 elements that the shape requires"},
      {InputJson("FP32", "[2]", "[1,2,3,{}]"), "data: has more than the 2 elements that the shape requires"},
      {InputJson("FP32", "[0]", "[1]"), "data: has more than the 0 elements that the shape requires"},
      {InputJson("FP32", "[2]", "[1]"), "data: has 1 elements, but the shape requires 2"},
      {InputJson("FP32", "[2,2]", "[[1,2]]"), "data: has 2 elements, but the shape requires 4"},
      {InputJson("FP32", "[1,2]", "[[1,2],3]"), "data: has more than the 2 elements that the shape requires"},
      {InputJson("FP32", "[1]", "[\"nan\"]"), "element 0 is the string 'nan', which is not a valid FP32"},
      {InputJson("FP32", "[1]", "[{}]"), "expected numbers, strings, true or false, got an object"},
      {InputJson("FP64", "[20000]",
                 absl::StrCat(
                     "[0",
                     [] {
                       std::string s;
                       for (int i = 1; i < 20'000; ++i) s += ",0";
                       return s;
                     }(),
                     "]")),
       "its first 12501 elements take more than the 100000 bytes"},
  };
  for (const auto& [json, why] : cases) {
    const auto read = Read(json);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << json;
    EXPECT_THAT(Why(read), HasSubstr(why)) << json.substr(0, 200);
  }
}

TEST(RestRequestTest, WhatIsNoRequestIsRefused) {
  const std::string deep(100'000, '[');
  const std::pair<std::string, std::string> cases[] = {
      {"", "the request is not valid JSON at byte "},
      {"{", "the request is not valid JSON"},
      {"{} x", "the request is not valid JSON"},
      {"[]", "request: expected an object with \"inputs\", got an array"},
      {"1", "expected an object with \"inputs\", got a number"},
      {deep, "expected an object"},
      {"{\"a\":" + deep, "nests deeper than 40 levels"},
      {R"({"id":1})", "id: expected a string, got a number"},
      {R"({"inputs":{}})", "inputs: expected an array, got an object"},
      {R"({"inputs":1})", "inputs: expected an array, got a number"},
      {R"({"inputs":[1]})", "inputs: expected an object with \"name\", got a number"},
      {R"({"inputs":[],"inputs":[]})", "inputs: is given twice"},
      {R"({"parameters":[]})", "parameters: expected an object"},
      {R"({"parameters":{"a":{}}})",
       "parameter 'a': expected a string, a number, true or false, got an object"},
      {R"({"parameters":{"a":null}})", "got null"},
      {R"({"parameters":{"binary_data_output":1}})", "binary_data_output: expected true or false"},
      {R"({"parameters":{"timeout":"x"}})", "timeout"},
      {R"({"inputs":[{}]})", "input number 1: has no \"name\""},
      {R"({"inputs":[{"name":"x"}]})", "input 'x': has no \"datatype\""},
      {R"({"inputs":[{"name":"x","data":[1]}]})", "input 'x': has no \"datatype\""},
      {R"({"inputs":[{"name":"x","datatype":"FP32"}]})", "input 'x': has no \"shape\""},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1]}]})", "input 'x': has no data; send"},
      {R"({"inputs":[{"name":"x","datatype":"FLOAT"}]})", "input 'x': the datatype is 'FLOAT', expected"},
      {R"({"inputs":[{"name":1}]})", "input number 1: name: expected a string, got a number"},
      {R"({"inputs":[{"name":"x","name":"y"}]})", "name: is given twice"},
      {R"({"inputs":[{"name":"x","shape":[-1]}]})", "input 'x': shape: expected non-negative integers"},
      {R"({"inputs":[{"name":"x","shape":[[1]]}]})", "input 'x': shape: expected integers, got an array"},
      {R"({"inputs":[{"name":"x","shape":"1"}]})", "shape: expected an array, got a string"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":"AAAA"}]})",
       "data: expected an array, got a string"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[9223372036854775807,9223372036854775807],"data":[1]}]})",
       "2^40"},
      {R"({"inputs":[{"name":"x","shape":[1],"shape":[1]}]})", "input 'x': shape: is given twice"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","datatype":"FP32"}]})",
       "input 'x': datatype: is given twice"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1],"data":[1]}]})",
       "input 'x': data: is given twice"},
      {R"({"inputs":[{"name":"x","shape":[9223372036854775808]}]})",
       "input 'x': shape: expected non-negative integers"},
      {R"({"inputs":[{"name":["x"]}]})", "name: expected a string, got an array"},
      {R"({"inputs":[{"name":"x","datatype":{}}]})", "datatype: expected a string, got an object"},
      {R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":{}}]})",
       "data: expected an array, got an object"},
      {R"({"inputs":[{"name":"x","parameters":1}]})", "parameters: expected an object, got a number"},
      {R"({"inputs":[{"name":"x","parameters":{"a":[]}}]})", "input 'x': parameter 'a': expected a string"},
      {R"({"inputs":[[]]})", "inputs: expected an object with \"name\", got an array"},
      {R"({"id":{}})", "id: expected a string, got an object"},
      {R"({"id":[]})", "id: expected a string, got an array"},
      {R"({"parameters":1})", "parameters: expected an object, got a number"},
      {R"({"outputs":[{"name":"y","shape":[-1]}]})", "output 'y': shape: expected non-negative integers"},
      {R"({"outputs":[{}]})", "output number 1: has no \"name\""},
      {R"({"outputs":[{"name":"y","parameters":{"binary_data":"yes"}}]})",
       "output 'y': parameter binary_data: expected true"},
  };
  for (const auto& [json, why] : cases) {
    const auto read = Read(json);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << json.substr(0, 200);
    EXPECT_THAT(Why(read), HasSubstr(why)) << json.substr(0, 200);
  }
}

std::string Repeated(const std::string& part, int times, const std::string& last) {
  std::string all;
  for (int i = 0; i < times; ++i) absl::StrAppend(&all, part, ",");
  return all + last;
}

TEST(RestRequestTest, ListsAreBounded) {
  const std::string tensor = R"({"name":"x"})";
  EXPECT_THAT(Why(Read(absl::StrCat(R"({"outputs":[)", Repeated(tensor, 1024, tensor), "]}"))),
              HasSubstr("outputs: has more than 1024 entries"));
  EXPECT_TRUE(Read(absl::StrCat(R"({"outputs":[)", Repeated(tensor, 1023, tensor), "]}")).ok());
  EXPECT_THAT(Why(Read(absl::StrCat(R"({"inputs":[{"name":"x","shape":[)", Repeated("1", 32, "1"), "]}]}"))),
              HasSubstr("input 'x': shape: has more than 32 extents"));
  EXPECT_THAT(Why(Read(absl::StrCat(R"({"parameters":{)", Repeated(R"("a":1)", 256, R"("a":1)"), "}}"))),
              HasSubstr("parameters: has more than 256 entries"));
}

// Zeros compress to a hundredth or less, and take as long to parse as other numbers.
TEST(RestRequestTest, CompressedJsonHasFewValues) {
  const auto why = [](const std::string& json, std::optional<size_t> compressed_bytes) {
    return Why(ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, kNoSharing,
                               {.max_bytes = kMax, .compressed_bytes = compressed_bytes}));
  };
  const auto zeros = [](int count) {
    return InputJson("UINT8", absl::StrCat("[", count, "]"),
                     absl::StrCat("[", Repeated("0", count - 1, "0"), "]"));
  };
  EXPECT_EQ(why(zeros(8100), 60), "it was taken");
  EXPECT_EQ(why(zeros(9000), std::nullopt), "it was taken");
  EXPECT_EQ(why(zeros(20'000), 2000), "it was taken");
  EXPECT_THAT(why(zeros(9000), 60),
              HasSubstr("more values and names than the 8192 that 60 compressed bytes may have; "
                        "send it uncompressed"));
  EXPECT_THAT(why(zeros(20'000), 1000), HasSubstr("the 16000 that 1000 compressed bytes may have"));
  // Data before the shape are read twice.
  const auto before = [](int count) {
    return absl::StrCat(R"({"inputs":[{"name":"x","data":[)", Repeated("0", count - 1, "0"),
                        R"(],"datatype":"UINT8","shape":[)", count, "]}]}");
  };
  EXPECT_EQ(why(before(4000), 60), "it was taken");
  EXPECT_EQ(why(before(5000), std::nullopt), "it was taken");
  EXPECT_THAT(why(before(5000), 60), HasSubstr("more values and names than the 8192"));
  EXPECT_THAT(why(InputJson("FP32", "[1]", absl::StrCat("[", Repeated("[]", 9000, "1"), "]")), 60),
              HasSubstr("more values and names than the 8192"));
}

// Clients of newer or other servers send members that this one does not know.
TEST(RestRequestTest, WhatIsNotKnownIsPassedOver) {
  const auto read =
      Read(R"({"more":1,"and":[[{"a":null}]],"inputs":[{"name":"x","datatype":"INT8","shape":[1],
      "more":{"a":[1]},"other":2.5,"data":[-1]}],"outputs":[{"name":"y","data":[1,"a"],"datatype":"ANY"}]})");
  EXPECT_THAT(ValuesOf<int8_t>(read), ElementsAre(-1));
  ASSERT_EQ(read->call.outputs.size(), 1u);
}

TEST(RestRequestTest, WhatIsNotServedSaysSo) {
  // Shared memory is unsupported unless it is allowed.
  for (
      const char* json :
      {R"({"parameters":{"sequence_id":1}})",
       R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"parameters":{"shared_memory_region":"a","shared_memory_byte_size":4}}]})"}) {
    EXPECT_TRUE(absl::IsUnimplemented(Read(json).status())) << json;
  }
}

TEST(RestRequestTest, BinaryDataStandBehindTheJson) {
  const auto read = ReadBinary(
      R"({"inputs":[{"name":"x","datatype":"FP16","shape":[2],"parameters":{"binary_data_size":4}},
                    {"name":"y","datatype":"UINT8","shape":[1],"data":[7]},
                    {"name":"z","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}},
                    {"name":"e","datatype":"FP32","shape":[0],"parameters":{"binary_data_size":0}}]})",
      std::string("abcd\1\0\0\0z", 9));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(BytesOf(read->call.inputs[0]), "abcd");
  EXPECT_EQ(BytesOf(read->call.inputs[1]), "\7");
  EXPECT_EQ(BytesOf(read->call.inputs[2]), std::string("\1\0\0\0z", 5));
  EXPECT_EQ(BytesOf(read->call.inputs[3]), "");
}

TEST(RestRequestTest, BinaryDataHaveToFit) {
  const auto input = [](const std::string& more) {
    return absl::StrCat(R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[4],)", more, "}]}");
  };
  const std::string four = input(R"("parameters":{"binary_data_size":4})");
  EXPECT_TRUE(ReadBinary(four, "abcd").ok());
  EXPECT_THAT(Why(ReadBinary(four, "abc")),
              HasSubstr("input 'x': binary_data_size is 4, but the body has only 3 bytes left"));
  EXPECT_THAT(Why(ReadBinary(four, "abcde")), HasSubstr("the body has 1 bytes more than"));
  EXPECT_THAT(Why(ReadBinary(input(R"("parameters":{"binary_data_size":3})"), "abc")),
              HasSubstr("input 'x': holds 3 bytes"));
  EXPECT_THAT(Why(ReadBinary(input(R"("parameters":{"binary_data_size":-4})"), "abcd")),
              HasSubstr("expected a number of bytes"));
  EXPECT_THAT(Why(ReadBinary(input(R"("data":[1,2,3,4],"parameters":{"binary_data_size":4})"), "abcd")),
              HasSubstr("has both data and binary_data_size"));
  EXPECT_THAT(Why(Read(four)), HasSubstr("the header Inference-Header-Content-Length is missing"));
  for (const char* length : {"", "-1", "x", "1000", "99999999999999999999"}) {
    EXPECT_THAT(Why(ReadRestRequest({.bytes = "{}", .owner = nullptr, .json_length = length}, kNoSharing,
                                    {.max_bytes = kMax})),
                HasSubstr("expected a number up to the body's 2 bytes"))
        << length;
  }
}

// Any text gives a request, or an error with a message.
TEST(RestRequestTest, TextsOfAnyKindAreSurvived) {
  const std::string whole =
      R"({"id":"a","parameters":{"p":1,"q":-2.5,"r":true},"inputs":[{"data":[[1],[2]],"shape":[2,1],)"
      R"("name":"x","datatype":"INT32"},{"name":"y","datatype":"BYTES","shape":[1],"data":["\u00e4"]},)"
      R"({"name":"z","datatype":"UINT8","shape":[4],"parameters":{"binary_data_size":4}}],)"
      R"("outputs":[{"name":"o","parameters":{"binary_data":true}}]})";
  ASSERT_TRUE(ReadBinary(whole, "abcd").ok());
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string json = whole;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % json.size();
      if (random() % 3 == 0) {
        json.erase(at, 1 + random() % 8);
      } else {
        json[at] = "[]{}\",:0-1e.ntx\xff\\"[random() % 18];
      }
    }
    const auto read = ReadBinary(json, "abcd");
    EXPECT_TRUE(read.ok() || !read.status().message().empty());
  }
}

TEST(RestRequestTest, BinaryTensorsAreChargedWithTheBody) {
  const auto mixed = ReadBinary(
      R"({"inputs":[{"name":"x","datatype":"UINT8","shape":[4],"parameters":{"binary_data_size":4}},)"
      R"({"name":"y","datatype":"FP32","shape":[2],"data":[1,2]}]})",
      "abcd");
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  // The elements of 'y' are a copy beside the body.
  EXPECT_EQ(mixed->call.charged_bytes, 4);
  const auto json = Read(R"({"inputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1,2]}]})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->call.charged_bytes, 0);
}

absl::StatusOr<RestCall> ReadRaw(const std::string& bytes, DataType type, std::vector<int64_t> shape,
                                 bool batched = false) {
  const auto kept = std::make_shared<const std::string>(bytes);
  const RestBody body{.bytes = *kept, .owner = kept, .json_length = "0"};
  EXPECT_TRUE(*IsRawBody(body));
  return ReadRawRequest(body, {{.name = "x", .type = type, .shape = std::move(shape)}}, batched);
}

TEST(RestRequestTest, ABodyWithoutJsonIsTheOnlyInput) {
  const auto picture = ReadRaw("JPEG", DataType::kBytes, {-1});
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_THAT(picture->call.inputs[0].shape, ElementsAre(1));
  EXPECT_EQ(BytesOf(picture->call.inputs[0]), std::string("\4\0\0\0JPEG", 8));
  EXPECT_TRUE(picture->form.BinaryOf("y"));
  EXPECT_EQ(picture->call.charged_bytes, 4);
  const auto rows = ReadRaw(std::string(24, 'x'), DataType::kFp32, {-1, 3});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->call.inputs[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(Why(ReadRaw("12345", DataType::kFp32, {-1, 3})),
              HasSubstr("5 bytes without JSON are not rows of 12"));
  EXPECT_THAT(Why(ReadRaw("12345", DataType::kFp32, {-1, -1})), HasSubstr("do not determine its extents"));
  const auto one = ReadRaw(std::string(24, 'x'), DataType::kFp32, {-1, -1, 3}, /*batched=*/true);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->call.inputs[0].shape, ElementsAre(1, 2, 3));
  EXPECT_THAT(Why(ReadRaw(std::string(24, 'x'), DataType::kFp32, {-1, -1, -1}, /*batched=*/true)),
              HasSubstr("do not determine its extents"));
  EXPECT_THAT(Why(ReadRaw("12345", DataType::kUint8, {4})), HasSubstr("holds 5 bytes"));
  EXPECT_THAT(Why(ReadRaw("12345", DataType::kFp32, {0, -1})), HasSubstr("are not rows of 0"));
  EXPECT_THAT(Why(ReadRaw("12345", DataType::kFp32, {int64_t{1} << 40, -1, 8})),
              HasSubstr("are not rows of 0"));
  EXPECT_THAT(Why(IsRawBody({.bytes = "{}", .owner = nullptr, .json_length = "x"})),
              HasSubstr("is 'x'; expected"));
  EXPECT_FALSE(*IsRawBody({.bytes = "{}", .owner = nullptr, .json_length = std::nullopt}));
  EXPECT_THAT(Why(ReadRawRequest({.bytes = "", .owner = nullptr, .json_length = "0"}, {}, false)),
              HasSubstr("this one has 0"));
}

}  // namespace
}  // namespace saccade::server

#include "server/protocols/rest/query.h"

#include <google/protobuf/util/message_differencer.h>

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using models::Task;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// What `query` sets in a request to a model of `task`.
absl::StatusOr<v1::PredictRequest> Read(const std::string& query, Task task) {
  auto parameters = ParseQuery(query);
  if (!parameters.ok()) return parameters.status();
  v1::PredictRequest message;
  if (absl::Status common = TakeCommonParameters(*parameters, &message); !common.ok()) return common;
  if (absl::Status options = SetOptions(*parameters, task, &message); !options.ok()) return options;
  return message;
}

TEST(RestQueryTest, TextsAreDecoded) {
  EXPECT_THAT(*ParseQuery(""), IsEmpty());
  EXPECT_THAT(*ParseQuery("&&"), IsEmpty());
  EXPECT_THAT(*ParseQuery("a=1&b&c=&=d&e=f=g"),
              ElementsAre(Pair("a", "1"), Pair("b", ""), Pair("c", ""), Pair("", "d"), Pair("e", "f=g")));
  EXPECT_THAT(*ParseQuery("a%20b=%C3%a4+x%2B"), ElementsAre(Pair("a b", "\u00e4 x+")));
  for (const char* wrong : {"a=%", "a=%1", "a=%g1", "a=%1g", "%=1"}) {
    EXPECT_THAT(std::string(ParseQuery(wrong).status().message()), HasSubstr("two hexadecimal digits"))
        << wrong;
  }
  for (const char* wrong : {"a=%ff", "%80=1", "a=%c3", "a=\xff"})
    EXPECT_THAT(std::string(ParseQuery(wrong).status().message()), HasSubstr("is not UTF-8")) << wrong;
}

TEST(RestQueryTest, TheNumberOfParametersIsBounded) {
  const auto query = [](size_t count) {
    std::string text = "classes=1";
    while (--count > 0) text += "&classes=1";
    return text;
  };
  EXPECT_TRUE(Read(query(256), Task::kDetection).ok());
  EXPECT_THAT(std::string(Read(query(257), Task::kDetection).status().message()),
              HasSubstr("has 257 parameters; expected at most 256"));
  EXPECT_EQ(ParseQuery(std::string(16000, '&')).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RestQueryTest, FewerParametersThatAreNotListsAreRead) {
  // In any order; a list's name may be written as any other text is.
  const auto query = [](int singles) {
    std::string text;
    for (int i = 0; i < 128; ++i) absl::StrAppend(&text, i < singles ? "a.b=1&" : "", "%63lasses=1&");
    return text;
  };
  EXPECT_TRUE(ParseQuery(query(64)).ok());
  const absl::Status refused = ParseQuery(query(65)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("has more than 64 parameters that are not lists; give each parameter once, and repeat "
                "only those that are lists (classes)"));
  // Each parameter of a task once.
  for (const Task task : {Task::kDetection, Task::kSegmentation, Task::kActions}) {
    std::string text;
    for (const KnownParameter& one : CommonParameters()) absl::StrAppend(&text, one.name, "=1&");
    for (const KnownParameter& one : OptionsOf(task)) absl::StrAppend(&text, one.name, "=1&");
    EXPECT_TRUE(ParseQuery(text).ok()) << text;
  }
}

struct Good {
  Task task;
  const char* query;
  // In protobuf's text format.
  const char* expected;
};

TEST(RestQueryTest, ParametersSetFields) {
  const Good cases[] = {
      {Task::kClassification, "", ""},
      {Task::kTensors, "version=3", "version: 3"},
      {Task::kClassification, "top_k=3&probability_threshold=0.25",
       "classification { top_k: 3 probability_threshold: 0.25 }"},
      {Task::kClassification, "topK=3", "classification { top_k: 3 }"},
      {Task::kClassification, "top_k=-1", "classification { top_k: -1 }"},
      {Task::kDetection, "score_threshold=0.5&top_k=10&classes=1&classes=2&masks=PNG&mask_threshold=0",
       "detection { score_threshold: 0.5 top_k: 10 classes: [1, 2] masks: PNG mask_threshold: 0 }"},
      {Task::kDetection, "request_id=a%20b&priority=-1&version_label=stable",
       "request_id: 'a b' priority: -1 version_label: 'stable'"},
      {Task::kDetection, "region.x=1&region.y=2&region.width=3&region.height=4",
       "region { x: 1 y: 2 width: 3 height: 4 }"},
      {Task::kDetection, "tiles.size=640&tiles.overlap=64", "tiles { size: 640 overlap: 64 }"},
      {Task::kDetection, "explain.layer=", "explain { layer: '' }"},
      {Task::kDetection, "explain.maxMaps=2", "explain { max_maps: 2 }"},
      {Task::kSegmentation, "format=RAW&size.width=10&size.height=20",
       "segmentation { format: RAW size { width: 10 height: 20 } }"},
      {Task::kSegmentation, "size.network=true", "segmentation { size { network: true } }"},
      {Task::kStereo, "format=FLOAT", "stereo_options { format: FLOAT }"},
      {Task::kActions, "score_threshold=1e-1", "actions { score_threshold: 0.1 }"},
      {Task::kActions, "score_threshold=-5E%2B1", "actions { score_threshold: -50 }"},
      {Task::kRestoration, "type=UINT16", "restoration { type: UINT16 }"},
  };
  for (const Good& one : cases) {
    const auto read = Read(one.query, one.task);
    ASSERT_TRUE(read.ok()) << one.query << ": " << read.status();
    v1::PredictRequest expected;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(one.expected, &expected)) << one.expected;
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*read, expected))
        << one.query << ": " << read->ShortDebugString();
  }
}

struct Bad {
  Task task;
  const char* query;
  const char* error;
};

TEST(RestQueryTest, ErrorsNameTheParameter) {
  const Bad cases[] = {
      {Task::kDetection, "score_threshold=high", "score_threshold: is 'high'; expected a number"},
      {Task::kDetection, "score_threshold=", "score_threshold: is ''; expected a number"},
      {Task::kDetection, "score_threshold=nan", "score_threshold: is 'nan'; expected a number"},
      {Task::kDetection, "score_threshold=1e99", "score_threshold: is '1e99'; expected a number"},
      {Task::kDetection, "score_threshold=0x1p-1", "score_threshold: is '0x1p-1'; expected a number"},
      {Task::kDetection, "score_threshold=%2B0.5", "score_threshold: is '+0.5'; expected a number"},
      {Task::kDetection, "score_threshold=+0.5", "score_threshold: is ' 0.5'; expected a number"},
      {Task::kDetection, "score_threshold=0.5%20", "score_threshold: is '0.5 '; expected a number"},
      {Task::kDetection, "score_threshold=5e-", "score_threshold: is '5e-'; expected a number"},
      {Task::kDetection, "top_k=1e2", "top_k: is '1e2'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=+1", "top_k: is ' 1'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=%2B1", "top_k: is '+1'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=%201", "top_k: is ' 1'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=1%09", "top_k: is '1\\t'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=--1", "expected an integer of 32 bits"},
      {Task::kDetection, "top_k=1.5", "top_k: is '1.5'; expected an integer of 32 bits"},
      {Task::kDetection, "top_k=2147483648", "expected an integer of 32 bits"},
      {Task::kDetection, "classes=1&classes=x", "classes: is 'x'; expected an integer of 64 bits"},
      {Task::kDetection, "masks=png", "masks: is 'png'; expected RLE, NONE, PNG, POLYGONS"},
      {Task::kDetection, "top_k=1&top_k=2", "top_k: is given twice; give it once"},
      {Task::kDetection, "top_k=1&topK=2", "topK: is given twice"},
      {Task::kDetection, "version=1&version=2", "version: is given twice"},
      {Task::kDetection, "version=one", "version: is 'one'; expected an integer of 64 bits"},
      {Task::kSegmentation, "size.network=yes", "size.network: is 'yes'; expected true or false"},
      {Task::kDetection, "colour=red",
       "'colour': is not a parameter; expected version, version_label, request_id, priority, region.x, "
       "region.y, region.width, region.height, tiles.size, tiles.overlap, tiles.whole, explain.layer, "
       "explain.max_maps, score_threshold, top_k, "
       "classes, masks, mask_threshold"},
      {Task::kClassification, "score_threshold=1", "'score_threshold': is not a parameter"},
      {Task::kTensors, "top_k=1", "'top_k': is not a parameter"},
      // Messages, and what lies in no message.
      {Task::kDetection, "region=1", "'region': is not a parameter"},
      {Task::kDetection, "region.q=1", "'region.q': is not a parameter"},
      {Task::kDetection, "explain.positions=1", "'explain.positions': is not a parameter"},
      {Task::kDetection, "explain.positions.x=1", "'explain.positions.x': is not a parameter"},
      {Task::kDetection, "priority.x=1", "'priority.x': is not a parameter"},
      {Task::kSegmentation, "size=1", "'size': is not a parameter"},
      {Task::kDetection, "=1", "'': is not a parameter"},
      {Task::kDetection, ".=1", "'.': is not a parameter"},
      // The model is in the path, the input in the body.
      {Task::kDetection, "model=m", "'model': is not a parameter"},
      {Task::kDetection, "encoded=AAAA", "'encoded': is not a parameter"},
      {Task::kDetection, "detection.top_k=1", "'detection.top_k': is not a parameter"},
  };
  for (const Bad& one : cases) {
    const auto read = Read(one.query, one.task);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << one.query << ": " << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(one.error)) << one.query;
  }
}

TEST(RestQueryTest, KnownParametersAreAccepted) {
  for (const Task task : {Task::kClassification, Task::kDetection, Task::kSegmentation, Task::kStereo,
                          Task::kActions, Task::kRestoration}) {
    auto known = OptionsOf(task);
    EXPECT_FALSE(known.empty()) << models::TaskName(task);
    for (const KnownParameter& one : CommonParameters()) known.push_back(one);
    for (const KnownParameter& one : known) {
      const auto read = Read(one.name + "=%00", task);
      // Some take any text; for the others the value is wrong, not the name.
      EXPECT_TRUE(read.ok() || read.status().message().find("is not a parameter") == absl::string_view::npos)
          << one.name;
    }
  }
}

}  // namespace
}  // namespace saccade::server

// Messages and bodies that are made to take much memory or time: parsing none takes more memory than was
// charged for it, and none is read for long before it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "saccade/v1/vision.pb.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/grpc/testing/pieces.h"
#include "server/protocols/inference/request.h"
#include "server/protocols/message_bytes.h"
#include "server/protocols/rest/members.h"
#include "server/protocols/rest/query.h"
#include "server/protocols/rest/request.h"
#include "server/protocols/testing/allocated.h"
#include "server/protocols/vision/json.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using testing::InPieces;
using testing::PeakMemory;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMaxMessage = 64 * kMiB;
// Memory that is not charged: the request's own structures, an error's text.
constexpr int64_t kSlack = 128 << 10;
constexpr char kClient[] = "ipv4:10.0.0.7";

std::string Repeated(const std::string& part, size_t bytes) {
  std::string all;
  all.reserve(bytes + part.size());
  while (all.size() < bytes) all += part;
  return all;
}

// `part` so often, separated by commas.
std::string Listed(const std::string& part, size_t bytes) {
  std::string all = Repeated(part + ",", bytes);
  all.pop_back();
  return all;
}

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Runs `parse` with a ledger as large as one client's part of the daemon's default. Expects that it takes no
// more memory than it charges, beside `uncharged` bytes. Returns the processor's seconds that it took.
template <typename Parse>
double ExpectCharged(const std::string& what, int64_t uncharged, const Parse& parse) {
  FakeLedger ledger(512 * kMiB);
  const PeakMemory memory;
  const double before = ProcessorSeconds();
  parse(ledger);
  const double took = ProcessorSeconds() - before;
  EXPECT_LE(memory.bytes(), ledger.peak() + uncharged + kSlack) << what;
  EXPECT_EQ(ledger.charged(), 0) << what;
  ::testing::Test::RecordProperty(absl::StrCat(what, "_charged"), absl::StrCat(ledger.peak()));
  ::testing::Test::RecordProperty(absl::StrCat(what, "_taken"), absl::StrCat(memory.bytes()));
  ::testing::Test::RecordProperty(absl::StrCat(what, "_seconds"), absl::StrCat(took));
  return took;
}

std::string Tensor(const std::string& type, const std::string& shape, const std::string& data) {
  return absl::StrCat(R"({"inputs":[{"name":"x","datatype":")", type, R"(","shape":[)", shape,
                      R"(],"data":[)", data, "]}]}");
}

RestLimits LimitsOf(FakeLedger& ledger) {
  return {.max_bytes = kMaxMessage, .ledger = &ledger, .client = kClient};
}

absl::StatusOr<RestCall> ReadRest(const std::string& json, const RestLimits& limits) {
  static const SharedMemory* const none = new SharedMemory({});
  return ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, *none, limits);
}

TEST(ParseMemoryTest, TensorsInJson) {
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"picture", Tensor("FP32", "1,3,600,600", Listed("0.1234567", 3 * 600 * 600 * 10))},
      {"zeros", Tensor("FP64", "8388608", Listed("0", 2 * 8388608))},
      {"too_many", Tensor("FP64", "1", Listed("0", 20 * kMiB))},
      {"large_shape", Tensor("FP64", "1099511627776", "0")},
      {"empty_strings", Tensor("BYTES", "2000000", Listed(R"("")", 3 * 2000000))},
      {"one_string", Tensor("BYTES", "1", "\"" + Repeated("a", 16 * kMiB) + "\"")},
      {"escapes", Tensor("BYTES", "1", "\"" + Repeated("\\\"\\\\", 8 * kMiB) + "\"")},
      {"before_shape", absl::StrCat(R"({"inputs":[{"data":[)", Listed("1", 8 * kMiB),
                                    R"(],"name":"x","shape":[4194304],"datatype":"INT64"}]})")},
      {"ignored_string", R"({"other":")" + Repeated("a", 16 * kMiB) + R"(","inputs":[]})"},
      {"long_name", R"({")" + Repeated("a", 16 * kMiB) + R"(":1,"inputs":[]})"},
      {"space", Tensor("FP32", "1", std::string(16 * kMiB, ' ') + "1")},
      {"empty_arrays", absl::StrCat(R"({"inputs":[{"data":[)", Listed("[]", 16 * kMiB), "]}]}")},
      {"long_number", Tensor("FP32", "1", Repeated("1", 16 * kMiB))},
      {"parameters",
       R"({"inputs":[)" +
           Listed(R"({"name":"x","parameters":{)" + Listed(R"("":1)", 250 * 5) + "}}", 1000 * 1300) + "]}"},
  };
  for (const auto& [what, body] : bodies) {
    ExpectCharged(what, 0, [&text = body](FakeLedger& ledger) {
      const auto read = ReadRest(text, LimitsOf(ledger));
      (void)read;
    });
  }
}

TEST(ParseMemoryTest, AnHonestTensorInJsonIsRead) {
  FakeLedger ledger(512 * kMiB);
  const auto read =
      ReadRest(Tensor("FP32", "1,3,600,600", Listed("0.5", 3 * 600 * 600 * 4)), LimitsOf(ledger));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->call.inputs.at(0).data.size(), 3u * 600 * 600 * 4);
  EXPECT_EQ(read->call.charged_bytes, 3 * 600 * 600 * 4) << "the engine does not charge them again";
  EXPECT_GE(ledger.charged(), 3 * 600 * 600 * 4) << "as long as the call is kept";
  EXPECT_LT(ledger.charged(), 3 * 600 * 600 * 4 + 10'000);
}

TEST(ParseMemoryTest, PredictionsInJson) {
  const std::string picture = absl::Base64Escape(std::string(12 * kMiB, 'x'));
  const std::string escaped = Repeated("\\/", 4 * kMiB);
  const std::string frames = R"({"model":"m","clip":{"frames":{"pictures":[)";
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"picture", absl::StrCat(R"({"model":"m","encoded":")", picture, "\"}")},
      {"escapes", absl::StrCat(R"({"model":"m","encoded":")", escaped, "\"}")},
      {"frames", frames + Listed("{}", 60'000 * 3 / 2) + "]}}}"},
      {"frames_of_pictures", frames + Listed(R"({"raw":{"pixels":"AAAA"}})", 10'000 * 25) + "]}}}"},
      {"classes", R"({"detection":{"classes":[)" + Listed("1", 60'000 * 2) + "]}}"},
      {"long_number", R"({"priority":)" + Repeated("1", 4 * kMiB) + "}"},
      {"long_name", R"({")" + Repeated("a", 4 * kMiB) + R"(":1})"},
  };
  for (const auto& [what, body] : bodies) {
    ExpectCharged(what, 0, [&text = body](FakeLedger& ledger) {
      v1::PredictRequest request;
      const auto charge = PredictRequestFromJson(text, &request, &ledger, kClient);
      (void)charge;
    });
  }
}

// 62.9 MB of empty objects took 18 seconds.
TEST(ParseMemoryTest, JsonOfEmptyObjectsIsRefusedAtOnce) {
  constexpr double kSeconds = 0.5;
  const std::string objects = Listed("{}", 60 * kMiB);
  const std::string pictures = R"({"model":"m","clip":{"frames":{"pictures":[)" + objects + "]}}}";
  absl::Status why;
  const auto predict = [&](FakeLedger& ledger) {
    v1::PredictRequest request;
    why = PredictRequestFromJson(pictures, &request, &ledger, kClient).status();
  };
  EXPECT_LT(ExpectCharged("pictures", 0, predict), kSeconds);
  EXPECT_THAT(std::string(why.message()), HasSubstr("more than the 65536 that are allowed"));
  const std::string other = R"({"other":[)" + objects + R"(],"inputs":[]})";
  const auto infer = [&](FakeLedger& ledger) { why = ReadRest(other, LimitsOf(ledger)).status(); };
  EXPECT_LT(ExpectCharged("other", 384 << 10, infer), kSeconds);
  EXPECT_THAT(std::string(why.message()), HasSubstr("more than 65536 values"));
  const std::string settings = R"({"other":[)" + objects + "]}";
  const auto order = [&](FakeLedger&) { why = ParseParameters(settings).status(); };
  EXPECT_LT(ExpectCharged("settings", 0, order), kSeconds);
  EXPECT_THAT(std::string(why.message()), HasSubstr("send settings only"));
}

TEST(ParseMemoryTest, ParsingEndsWhenTheClientHasGone) {
  const std::string body = Tensor("FP64", "8388608", Listed("0", 2 * 8388608));
  Cancellation gone;
  gone.Cancel();
  FakeLedger ledger;
  RestLimits limits = LimitsOf(ledger);
  limits.cancellation = &gone;
  const double before = ProcessorSeconds();
  EXPECT_EQ(ReadRest(body, limits).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(ProcessorSeconds() - before, 0.05);
}

// Each of these is 163 bytes, compressed, and took 6 to 15 ms.
TEST(ParseMemoryTest, CompressedMessagesOfManyPartsAreRefusedAtOnce) {
  constexpr int kMessages = 100;
  constexpr double kSeconds = 0.1;
  v1::PredictRequest frames;
  for (int i = 0; i < 65'000; ++i) frames.mutable_clip()->mutable_frames()->add_pictures();
  BytePieces inputs = InPieces(Repeated(std::string("\x2a\x00", 2), 2 * 65'535), kMiB);
  BytePieces pictures = InPieces(frames, kMiB);
  inputs.set_compressed_size(163);
  pictures.set_compressed_size(163);
  const double before = ProcessorSeconds();
  for (int i = 0; i < kMessages; ++i) {
    InferenceRequest infer;
    EXPECT_TRUE(absl::IsInvalidArgument(ReadInferenceRequest(inputs, infer)));
    v1::PredictRequest predict;
    EXPECT_TRUE(absl::IsInvalidArgument(ParseMessage(pictures, &predict).status()));
  }
  EXPECT_LT(ProcessorSeconds() - before, kSeconds);
}

// 16 kB of zeros, compressed, which were parsed twice and took a second.
TEST(ParseMemoryTest, CompressedZerosInJsonAreRefusedAtOnce) {
  const std::string body = absl::StrCat(R"({"inputs":[{"name":"a","data":[)", Listed("0", 2 * 8'388'001),
                                        R"(],"datatype":"UINT8","shape":[8388001]}]})");
  FakeLedger ledger(512 * kMiB);
  RestLimits limits = LimitsOf(ledger);
  limits.compressed_bytes = 16'000;
  const double before = ProcessorSeconds();
  EXPECT_THAT(std::string(ReadRest(body, limits).status().message()), HasSubstr("send it uncompressed"));
  EXPECT_LT(ProcessorSeconds() - before, 0.3);
}

// Messages of protobuf. Up to twice their size, parsing is not charged.
TEST(ParseMemoryTest, Messages) {
  // A clip's frames, of which each is empty.
  v1::PredictRequest frames;
  for (int i = 0; i < 60'000; ++i) frames.mutable_clip()->mutable_frames()->add_pictures();
  // Explain, which contains an unknown string; both are said to have 800 MB.
  const std::string lengths("\x82\x01\xf0\xfd\xe7\xfd\x02\x82\x01\xf0\xfd\xe7\xfd\x02xx");
  const std::vector<std::pair<std::string, std::string>> messages = {
      {"lengths", lengths},
      {"lengths_after_more", Repeated("\xa0\x06\x01", 1000) + lengths},
      {"frames", frames.SerializeAsString()},
      {"models", Repeated(std::string("\x0a\x00", 2), 500'000)},
      {"unknown_numbers", Repeated("\xa0\x06\x01", 700'000)},
      {"unknown_strings", Repeated(std::string("\xa2\x06\x00", 3), 700'000)},
      {"too_many_strings", Repeated(std::string("\x0a\x00", 2), 60 * kMiB)},
      {"too_many_unknown", Repeated("\xa0\x06\x01", 60 * kMiB)},
      {"too_many_numbers", Repeated(std::string("\x38\x00", 2), 60 * kMiB)},
      {"too_many_groups", Repeated("\xa3\x06\xa4\x06", 60 * kMiB)},
      {"too_many_messages", Repeated(std::string("\x2a\x00", 2), 60 * kMiB)},
  };
  for (const auto& [what, message] : messages) {
    const BytePieces bytes = InPieces(message, kMiB);
    const auto parse = [&bytes](FakeLedger& ledger) {
      v1::PredictRequest request;
      const auto charge = ParseMessage(bytes, &request, &ledger, kClient);
      (void)charge;
    };
    EXPECT_LT(ExpectCharged(what, 2 * static_cast<int64_t>(bytes.size()), parse), 0.5) << what;
    // The same as a message that is not charged.
    const auto order = [&bytes](FakeLedger&) {
      v1::PredictRequest request;
      const auto charge = ParseMessage(bytes, &request);
      (void)charge;
    };
    EXPECT_LT(ExpectCharged(what + "_order", kMaxUnchargedBytes, order), 0.5) << what;
  }
}

// Each part of such a name took memory, once for each field that the name was compared with.
TEST(ParseMemoryTest, NamesOfParametersAreNotSplit) {
  // Protobuf makes the descriptors when they are first asked for.
  ASSERT_FALSE(CommonParameters().empty());
  ASSERT_FALSE(OptionsOf(models::Task::kDetection).empty());
  for (const char* first : {"a", "region", "top_k", "classes"}) {
    QueryParameters parameters = {{first + Repeated(".a", kMiB), "1"}};
    v1::PredictRequest request;
    const PeakMemory memory;
    EXPECT_TRUE(TakeCommonParameters(parameters, &request).ok()) << first;
    EXPECT_EQ(parameters.size(), 1u) << first;
    EXPECT_TRUE(absl::IsInvalidArgument(SetOptions(parameters, models::Task::kDetection, &request))) << first;
    EXPECT_LT(memory.bytes(), kSlack) << first;
  }
}

TEST(ParseMemoryTest, AnOrderThatIsTooLargeSaysSo) {
  inference::ServerReadyRequest request;
  const std::string unknown = Repeated("\xa0\x06\x01", 60 * kMiB);
  EXPECT_THAT(std::string(ParseMessage(InPieces(unknown, kMiB), &request).status().message()),
              HasSubstr("contains more than 262144 strings and unknown fields"));
  const std::string fewer = Repeated("\xa0\x06\x01", 700'000);
  EXPECT_THAT(std::string(ParseMessage(InPieces(fewer, kMiB), &request).status().message()),
              HasSubstr("more than the 4194304 that are allowed"));
  inference::RepositoryModelLoadRequest load;
  (*load.mutable_parameters())["config"].set_string_param(std::string(kMiB, 'x'));
  inference::RepositoryModelLoadRequest read;
  EXPECT_TRUE(ParseMessage(InPieces(load, kMiB), &read).ok()) << "the largest configuration";
}

}  // namespace
}  // namespace saccade::server

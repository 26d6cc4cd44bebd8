#include "server/protocols/vision/attest.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/attestation/attester.h"
#include "server/core/fake_clock.h"
#include "server/core/served_by.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

constexpr char kPem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";

class AttestTest : public ::testing::Test {
 protected:
  // Signs `answer` as one of a model that asks for that, and returns its statement.
  nlohmann::ordered_json Sign(const v1::PredictRequest& request, v1::PredictResponse* answer,
                              const std::string& file = "", const std::string& key_of_model = "f00d") {
    const CallScope scope({.attester = &attester_}, start_, "saccade.v1.Vision/Predict");
    CallHead head;
    scope.Describe(head);
    ModelIdentity identity;
    identity.attestation_key_sha256 = key_of_model;
    head.served->version = 3;
    head.served->identity = std::make_shared<const ModelIdentity>(identity);
    EXPECT_TRUE(Attest(scope, request, answer, file).ok());
    if (!answer->has_attestation()) return nullptr;
    return nlohmann::ordered_json::parse(answer->attestation().statement());
  }

  FakeClock clock_;
  const Attester attester_{*AttestationKey::Open("", kPem), "a build", &clock_};
  const CallStart start_ = {.method = "/saccade.v1.Vision/Predict",
                            .client = "a client",
                            .metadata = {},
                            .arrival = clock_.Now(),
                            .deadline = absl::InfiniteFuture()};
};

TEST_F(AttestTest, ARequestIsStatedWithoutItsInputsAndWithoutWhatChangesNoAnswer) {
  v1::PredictRequest request;
  request.set_model("detector");
  request.set_version(3);
  request.set_request_id("mine");
  request.set_priority(5);
  request.set_encoded("a picture");
  request.mutable_detection()->set_score_threshold(0.1F);
  request.mutable_detection()->add_classes(4);
  request.mutable_region()->set_x(7);
  v1::PredictResponse answer;
  const auto statement = Sign(request, &answer);
  EXPECT_EQ(statement["model"], "detector");
  EXPECT_EQ(statement["version"], 3);
  EXPECT_EQ(statement["request"].dump(),
            R"({"encoded":"","detection":{"score_threshold":0.1,"classes":["4"]},"region":{"x":7}})");
  EXPECT_EQ(statement["inputs_sha256"], nlohmann::ordered_json({Sha256Hex("a picture")}));
}

TEST_F(AttestTest, EveryKindOfInputIsDigested) {
  struct Case {
    v1::PredictRequest request;
    std::string stated;
    std::vector<std::string> inputs;
  };
  std::vector<Case> cases(5);
  auto& raw = *cases[0].request.mutable_raw();
  raw.set_width(1);
  raw.set_order(v1::RawPicture::BGR);
  raw.set_pixels("bgr");
  cases[0].stated = R"({"raw":{"width":1,"order":"BGR","pixels":""}})";
  cases[0].inputs = {"bgr"};
  cases[1].request.mutable_stereo()->mutable_left()->set_encoded("left");
  cases[1].request.mutable_stereo()->mutable_right()->mutable_raw()->set_pixels("right");
  cases[1].stated = R"({"stereo":{"left":{"encoded":""},"right":{"raw":{"pixels":""}}}})";
  cases[1].inputs = {"left", "right"};
  auto& frames = *cases[2].request.mutable_clip()->mutable_frames();
  frames.add_pictures()->set_encoded("0");
  frames.add_pictures()->set_encoded("1");
  frames.set_frames_per_second(12.5);
  cases[2].stated =
      R"({"clip":{"frames":{"pictures":[{"encoded":""},{"encoded":""}],"frames_per_second":12.5}}})";
  cases[2].inputs = {"0", "1"};
  auto& volume = *cases[3].request.mutable_volume()->mutable_raw();
  volume.mutable_shape()->set_depth(2);
  volume.set_voxels("voxels");
  cases[3].stated = R"({"volume":{"raw":{"shape":{"depth":2},"voxels":""}}})";
  cases[3].inputs = {"voxels"};
  cases[4].request.mutable_clip()->set_video("video");
  cases[4].stated = R"({"clip":{"video":""}})";
  cases[4].inputs = {"video"};
  for (const Case& one : cases) {
    v1::PredictResponse answer;
    const auto statement = Sign(one.request, &answer);
    EXPECT_EQ(statement["request"].dump(), one.stated);
    nlohmann::ordered_json sums = nlohmann::ordered_json::array();
    for (const std::string& input : one.inputs) sums.push_back(Sha256Hex(input));
    EXPECT_EQ(statement["inputs_sha256"], sums) << one.stated;
  }
}

TEST_F(AttestTest, ABodyIsTheInput) {
  v1::PredictRequest request;
  request.set_encoded("");
  v1::PredictResponse answer;
  EXPECT_EQ(Sign(request, &answer, "a file")["inputs_sha256"], nlohmann::ordered_json({Sha256Hex("a file")}));
}

TEST_F(AttestTest, TheDigestIsOfTheResultAlone) {
  v1::PredictResponse result;
  result.mutable_embedding()->add_values(0.5F);
  result.set_picture_width(9);
  const std::string expected = Sha256Hex(result.SerializeAsString());
  v1::PredictResponse answer = result;
  answer.set_model("detector");
  answer.set_version(3);
  answer.set_request_id("mine");
  answer.set_batch_size(2);
  answer.mutable_timings()->mutable_total()->set_nanos(5);
  EXPECT_EQ(Sign({}, &answer)["answer_sha256"], expected);
  EXPECT_EQ(answer.model(), "detector");
  EXPECT_EQ(answer.version(), 3);
  EXPECT_EQ(answer.request_id(), "mine");
  EXPECT_EQ(answer.batch_size(), 2);
  result.mutable_embedding()->set_values(0, 0.25F);
  EXPECT_NE(Sign({}, &result)["answer_sha256"], expected);
}

TEST_F(AttestTest, AModelThatDoesNotAskForItSignsNothing) {
  v1::PredictResponse answer;
  EXPECT_EQ(Sign({}, &answer, "", ""), nullptr);
  EXPECT_FALSE(answer.has_attestation());
}

}  // namespace
}  // namespace saccade::server

#include "server/protocols/vision/restore_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core/fake_clock.h"
#include "server/protocols/testing/fake_call.h"
#include "server/protocols/testing/model_pipeline.h"

namespace saccade::server {
namespace {

using testing::FakeCall;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// The model is the identity, so the answer is the volume.
class RestoreStreamTest : public testing::ModelPipelineTest {
 protected:
  // A client may hold 32 MiB.
  RestoreStreamTest() : ModelPipelineTest({.max_inflight_bytes = 64 * kMiB, .max_message_bytes = kMiB}) {}

  void SetUp() override {
    WriteIdentity(/*max_batch_size=*/1);
    LoadModels();
  }
  void TearDown() override {
    ModelPipelineTest::TearDown();
    EXPECT_EQ(admission_->inflight().requests, 0) << "everything was given back";
    EXPECT_EQ(admission_->inflight().bytes, 0) << "everything was given back";
  }

  std::unique_ptr<FakeCall> Begin(absl::Duration max_upload = absl::Minutes(10)) {
    auto call = std::make_unique<FakeCall>(CallStart{.method = "/saccade.v1.Vision/Restore",
                                                     .client = "ipv4:10.0.0.7",
                                                     .metadata = {},
                                                     .arrival = clock_.Now(),
                                                     .deadline = absl::InfiniteFuture()});
    call->Begin(std::make_shared<RestoreStream>(RestoreStream::Server{.pipeline = &pipeline_,
                                                                      .catalog = &catalog_,
                                                                      .clock = &clock_,
                                                                      .retry_jitter = &jitter_,
                                                                      .uploads = &uploads_,
                                                                      .max_upload = max_upload,
                                                                      .min_bytes_per_second = kRate,
                                                                      .grace = absl::Seconds(10)}));
    return call;
  }

  static v1::RestoreRequest Header(int64_t depth, int64_t height, int64_t width) {
    v1::RestoreRequest part;
    auto* header = part.mutable_header();
    header->set_model("identity");
    header->set_request_id("an id");
    header->set_bytes(depth * height * width * 4);
    header->mutable_raw()->set_depth(static_cast<int32_t>(depth));
    header->mutable_raw()->set_height(static_cast<int32_t>(height));
    header->mutable_raw()->set_width(static_cast<int32_t>(width));
    header->mutable_raw()->set_type(v1::VolumeShape::FLOAT32);
    return part;
  }
  static v1::RestoreRequest Data(std::string bytes) {
    v1::RestoreRequest part;
    part.set_data(std::move(bytes));
    return part;
  }
  static std::string Voxels(int64_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  // The end of a call that was refused, with what its message contains.
  static void ExpectRefused(FakeCall& call, absl::StatusCode code, const std::string& part) {
    ASSERT_TRUE(call.is_finished());
    EXPECT_EQ(call.end().status.code(), code) << call.end().status;
    EXPECT_THAT(std::string(call.end().status.message()), HasSubstr(part));
    call.Done();
  }

  int64_t charged() const { return admission_->inflight().bytes; }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    uploads_.Sweep(clock_.Now());
  }

  static constexpr int64_t kRate = 256 << 10;

  FakeClock clock_{Clock::Real()->Now()};
  RetryJitter jitter_{1};
  Uploads uploads_;
};

TEST_F(RestoreStreamTest, AVolumeComesAndGoesInParts) {
  const auto call = Begin();
  const std::string volume = Voxels(8 * 256 * 256);
  call->Deliver(Header(8, 256, 256));
  for (size_t from = 0; from < volume.size(); from += 700'000)
    call->Deliver(Data(volume.substr(from, 700'000)));
  call->HalfClose();
  std::string received;
  bool is_answered = false;
  while (received.size() < volume.size()) {
    v1::RestoreResponse part;
    ASSERT_TRUE(part.ParseFromString(call->Written()));
    if (part.has_answer()) {
      EXPECT_FALSE(is_answered);
      is_answered = true;
      EXPECT_EQ(part.answer().model(), "identity");
      EXPECT_EQ(part.answer().request_id(), "an id");
      EXPECT_EQ(part.answer().restoration().shape().width(), 256);
      EXPECT_EQ(part.answer().restoration().voxels(), "");
    } else if (!part.has_progress()) {
      EXPECT_TRUE(is_answered);
      received += part.voxels();
    }
  }
  EXPECT_TRUE(received == volume);
  EXPECT_TRUE(call->end().status.ok()) << call->end().status;
  call->Done();
}

TEST_F(RestoreStreamTest, AnAnnouncedVolumeHoldsNothing) {
  const auto silent = Begin();
  silent->Deliver(Header(30, 256, 1024));
  EXPECT_FALSE(silent->is_finished());
  EXPECT_EQ(admission_->inflight().requests, 0);
  EXPECT_EQ(charged(), 0);
  silent->Deliver(Data("x"));
  EXPECT_EQ(charged(), kMiB);
  silent->Cancel();
  ExpectRefused(*silent, absl::StatusCode::kCancelled, "cancelled");
  EXPECT_EQ(charged(), 0);
}

TEST_F(RestoreStreamTest, AVolumeThatCannotFitIsRefusedAtOnce) {
  const auto huge = Begin();
  huge->Deliver(Header(65, 512, 512));
  ExpectRefused(*huge, absl::StatusCode::kInvalidArgument, "--max-inflight-bytes");
}

TEST_F(RestoreStreamTest, ARefusedStepEndsTheCall) {
  const auto call = Begin();
  call->Deliver(Header(20, 256, 1024));
  for (int i = 0; i < 8; ++i) call->Deliver(Data(std::string(kMiB, 'x')));
  EXPECT_EQ(charged(), 8 * kMiB);
  auto others = *admission_->Charge("ipv4:10.0.0.7", 20 * kMiB);
  call->Deliver(Data("x"));
  ExpectRefused(*call, absl::StatusCode::kResourceExhausted, "bytes");
}

TEST_F(RestoreStreamTest, WhatIsNoStreamOfAVolumeIsRefused) {
  const auto refused = [this](const std::vector<v1::RestoreRequest>& parts, bool then_closed,
                              const std::string& expected) {
    const auto call = Begin();
    for (const v1::RestoreRequest& part : parts) call->Deliver(part);
    if (then_closed) call->HalfClose();
    ExpectRefused(*call, absl::StatusCode::kInvalidArgument, expected);
  };
  refused({}, true, "the first has to be 'header'");
  refused({Data("x")}, false, "the first has to be 'header'");
  refused({v1::RestoreRequest()}, false, "part: is missing");
  refused({Header(1, 2, 2), Header(1, 2, 2)}, false, "came twice");
  refused({Header(1, 2, 2), Data(std::string(15, 'x'))}, true, "15 bytes came; the header announced 16");
  refused({Header(1, 2, 2), Data(std::string(17, 'x'))}, false, "more than the 16 bytes");
  refused({Header(0, 2, 2)}, false, "header.bytes");
  const auto garbage = Begin();
  garbage->Deliver("\x0a\xff");
  ExpectRefused(*garbage, absl::StatusCode::kInvalidArgument, "not a valid saccade.v1.RestoreRequest");
}

TEST_F(RestoreStreamTest, ASilentUploadIsEnded) {
  const auto call = Begin(/*max_upload=*/absl::Seconds(5));
  call->Deliver(Header(1, 256, 256));
  Advance(absl::Seconds(4.9));
  EXPECT_FALSE(call->is_finished());
  Advance(absl::Seconds(0.1));
  ExpectRefused(*call, absl::StatusCode::kDeadlineExceeded, "--upload-timeout-seconds");
}

TEST_F(RestoreStreamTest, TheTimeoutIsCheckedWhenDataComes) {
  const auto call = Begin(/*max_upload=*/absl::Seconds(5));
  call->Deliver(Header(1, 256, 256));
  clock_.Advance(absl::Seconds(5));
  call->Deliver(Data("x"));
  ExpectRefused(*call, absl::StatusCode::kDeadlineExceeded, "--upload-timeout-seconds");
}

TEST_F(RestoreStreamTest, ASlowUploadIsEnded) {
  const auto call = Begin();
  call->Deliver(Header(8, 256, 256));
  call->Deliver(Data(std::string(kRate, 'x')));
  Advance(absl::Seconds(11));
  EXPECT_FALSE(call->is_finished()) << "the rate is measured after the first 10 seconds";
  Advance(absl::Seconds(0.5));
  ExpectRefused(*call, absl::StatusCode::kDeadlineExceeded, "too slowly");
}

TEST_F(RestoreStreamTest, AnUploadThatWasEndedIsNotReadOn) {
  const auto call = Begin();
  call->Deliver(Header(8, 256, 256));
  Advance(absl::Minutes(1));
  ASSERT_TRUE(call->is_finished());
  call->Deliver(Data("it was on its way"));
  call->Cancel();
  ExpectRefused(*call, absl::StatusCode::kDeadlineExceeded, "too slowly");
}

TEST_F(RestoreStreamTest, ADrainEndsUploadsThatAreNotComplete) {
  const auto call = Begin();
  call->Deliver(Header(8, 256, 256));
  uploads_.EndAll(absl::UnavailableError("draining"));
  ExpectRefused(*call, absl::StatusCode::kUnavailable, "draining");
  const auto later = Begin();
  ExpectRefused(*later, absl::StatusCode::kUnavailable, "draining");
}

TEST_F(RestoreStreamTest, TheClientGoesWhileTheAnswerIsSent) {
  const auto call = Begin();
  const std::string volume = Voxels(2 * 1024 * 1024);
  call->Deliver(Header(8, 512, 512));
  for (size_t from = 0; from < volume.size(); from += kMiB) call->Deliver(Data(volume.substr(from, kMiB)));
  call->HalfClose();
  v1::RestoreResponse part;
  while (!part.has_answer()) ASSERT_TRUE(part.ParseFromString(call->Written()));
  call->Written();
  EXPECT_GT(charged(), 0) << "the answer's memory";
  call->Written(/*ok=*/false);
  EXPECT_TRUE(call->is_finished());
  EXPECT_FALSE(call->is_sending());
  call->Done();
}

}  // namespace
}  // namespace saccade::server

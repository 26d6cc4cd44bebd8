#include "server/protocols/vision/crop_answer.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/protocols/vision/results.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class CropAnswerTest : public ::testing::Test {
 protected:
  int64_t charged() const { return admission_->inflight().bytes; }

  const std::unique_ptr<Admission> admission_ = *Admission::Create({}, Clock::Real());
  const Admission::Ticket ticket_ = *admission_->Admit({.bytes = 0});
};

TEST_F(CropAnswerTest, ManySmallCropsAreChargedTogether) {
  CropAnswer answer(1 << 20, 0);
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(answer.Add(1024, ticket_).ok());
  EXPECT_EQ(charged(), 0);
  ASSERT_TRUE(answer.Add(1024, ticket_).ok());
  EXPECT_EQ(charged(), 64 << 10);
  ASSERT_TRUE(answer.Add(100'000, ticket_).ok());
  EXPECT_EQ(charged(), (64 << 10) + 100'000);
}

TEST_F(CropAnswerTest, TheFinishedAnswerIsChargedOnceAndAsAWhole) {
  CropAnswer answer(1 << 20, 0);
  ASSERT_TRUE(answer.Add(100'000, ticket_).ok());
  ASSERT_TRUE(answer.Add(1000, ticket_).ok());
  auto charge = answer.Finish(101'500, ticket_);
  EXPECT_EQ(charged(), 101'500);
  charge = nullptr;
  EXPECT_EQ(charged(), 0);
  EXPECT_EQ(CropAnswer(1 << 20, 0).Finish(1000, ticket_), nullptr) << "it is small";
}

TEST_F(CropAnswerTest, ACropThatMakesTheAnswerTooLargeIsRefused) {
  CropAnswer answer(10'000, 1000);
  ASSERT_TRUE(answer.Add(9000 - kMaxTimings, ticket_).ok());
  const absl::Status refused = answer.Add(1, ticket_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the answer has 10001 bytes, more than --max-message-bytes 10000; ask for fewer "
                        "detections"));
  // The same as for a finished message.
  v1::PredictResponse message;
  message.mutable_detections()->add_detections()->set_label(std::string(10'000, 'x'));
  EXPECT_EQ(CheckSize(message, 10'000),
            CheckDetectionsSize(static_cast<int64_t>(message.ByteSizeLong()), 10'000));
}

}  // namespace
}  // namespace saccade::server

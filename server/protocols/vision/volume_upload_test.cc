#include "server/protocols/vision/volume_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/admission/admission.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

class VolumeUploadTest : public ::testing::Test {
 protected:
  int64_t charged() const { return admission_->inflight().bytes; }

  const std::unique_ptr<Admission> admission_ = *Admission::Create(
      {.max_inflight_bytes = 32 * static_cast<int64_t>(kMiB), .max_message_bytes = 1}, Clock::Real());
  VolumeUpload upload_{admission_.get(), "ipv4:10.0.0.7"};
};

TEST_F(VolumeUploadTest, TheBytesAreThoseThatCame) {
  upload_.Announce(5 * kMiB + 3);
  std::string expected;
  for (int i = 0; expected.size() < upload_.announced(); ++i) {
    const std::string part(std::min(upload_.announced() - expected.size(), size_t{700'001}),
                           static_cast<char>('a' + i));
    ASSERT_TRUE(upload_.Append(part).ok());
    expected += part;
  }
  EXPECT_TRUE(upload_.bytes() == expected);
}

TEST_F(VolumeUploadTest, IsChargedAsItComes) {
  upload_.Announce(15 * kMiB);
  EXPECT_EQ(charged(), 0);
  std::vector<int64_t> charges;
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(upload_.Append(std::string(kMiB, 'x')).ok());
    charges.push_back(charged() / static_cast<int64_t>(kMiB));
  }
  EXPECT_THAT(charges, ::testing::ElementsAre(1, 2, 4, 4, 8, 8, 8, 8, 15, 15, 15, 15, 15, 15, 15));
  upload_.Release();
  EXPECT_EQ(charged(), 0);
}

TEST_F(VolumeUploadTest, ASmallOneIsChargedWithItsSize) {
  upload_.Announce(100);
  ASSERT_TRUE(upload_.Append("x").ok());
  EXPECT_EQ(charged(), 100);
}

TEST_F(VolumeUploadTest, MoreThanAnnouncedIsAnError) {
  upload_.Announce(10);
  ASSERT_TRUE(upload_.Append("0123456").ok());
  const absl::Status more = upload_.Append("789a");
  EXPECT_EQ(more.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.message()), HasSubstr("more than the 10 bytes"));
  EXPECT_TRUE(upload_.Append("789").ok());
  EXPECT_EQ(upload_.bytes(), "0123456789");
}

TEST_F(VolumeUploadTest, ARefusedStepIsAnErrorAndKeepsTheRest) {
  // Half of the bound is a client's share.
  upload_.Announce(20 * kMiB);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(upload_.Append(std::string(kMiB, 'x')).ok());
  const absl::Status refused = upload_.Append("x");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(upload_.bytes().size(), 16 * kMiB);
  EXPECT_EQ(charged(), static_cast<int64_t>(16 * kMiB));
}

}  // namespace
}  // namespace saccade::server

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/status.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kPartBytes = 1 << 20;

Restoration Restored(VolumeShape shape, std::string voxels) {
  Restoration answer;
  answer.model = "denoise";
  answer.version = 3;
  answer.timings.infer = absl::Seconds(7);
  answer.shape = shape;
  answer.voxels = std::move(voxels);
  answer.min = -1.5f;
  answer.max = 8;
  return answer;
}

// The bytes differ from part to part, so that a lost, repeated or swapped part is noticed.
std::string Bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  return bytes;
}

class Restore : public ::testing::Test {
 protected:
  // The daemon answers every request with a volume of `shape`.
  void AnswerWith(VolumeShape shape, std::string voxels) {
    daemon_.SetPredict([=](const FakeRequest&) { return Restored(shape, voxels); });
  }

  absl::Status StatusOf(const std::string& sent = "volume") {
    return ConnectTo(daemon_.url())->Restore("denoise", VolumeFrom(sent)).status();
  }

  FakeDaemon daemon_;
};

TEST_F(Restore, SendsAFileAsItIsAndReadsTheAnswer) {
  daemon_.SetPredict([](const FakeRequest& request) {
    EXPECT_EQ(request.model, "denoise");
    EXPECT_EQ(request.picture, "volume");
    EXPECT_EQ(request.announced_bytes, 6);
    EXPECT_FALSE(request.raw.has_value());
    EXPECT_EQ(request.restore.type, std::nullopt);
    EXPECT_EQ(request.request.version, 3);
    EXPECT_EQ(request.request.priority, -7);
    Restoration answer = Restored({1, 2, 3, VoxelType::kUint16}, "abcdefghijkl");
    answer.request_id = request.request.request_id;
    return answer;
  });
  const auto answer = ConnectTo(daemon_.url())
                          ->Restore("denoise", VolumeFrom("volume"),
                                    {.request = {.version = 3, .priority = -7, .request_id = "abc"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->model, "denoise");
  EXPECT_EQ(answer->version, 3);
  EXPECT_EQ(answer->request_id, "abc");
  EXPECT_EQ(answer->timings.infer, absl::Seconds(7));
  EXPECT_GT(answer->timings.round_trip, absl::ZeroDuration());
  EXPECT_EQ(answer->shape.depth, 1);
  EXPECT_EQ(answer->shape.height, 2);
  EXPECT_EQ(answer->shape.width, 3);
  EXPECT_EQ(answer->shape.type, VoxelType::kUint16);
  EXPECT_EQ(answer->voxels, "abcdefghijkl");
  EXPECT_EQ(answer->min, -1.5f);
  EXPECT_EQ(answer->max, 8);
}

TEST_F(Restore, SendsRawVoxelsInPartsWithTheirShape) {
  const std::string sent = Bytes(3 * kPartBytes + 4);
  const VolumeShape shape{3, 1, (1 << 18) + 1, VoxelType::kFloat32};
  daemon_.SetRestore({.part_bytes = 1000003});
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.announced_bytes, static_cast<int64_t>(sent.size()));
    EXPECT_THAT(request.part_bytes, ElementsAre(kPartBytes, kPartBytes, kPartBytes, 4));
    EXPECT_TRUE(request.picture == sent);
    EXPECT_EQ(request.restore.type, VoxelType::kUint8);
    if (!request.raw) return absl::InvalidArgumentError("no shape");
    EXPECT_EQ(request.raw->depth, 3);
    EXPECT_EQ(request.raw->height, 1);
    EXPECT_EQ(request.raw->width, (1 << 18) + 1);
    EXPECT_EQ(request.raw->type, VoxelType::kFloat32);
    return Restored({1, 1, static_cast<int>(sent.size()), VoxelType::kUint8}, sent);
  });
  const auto answer =
      ConnectTo(daemon_.url())->Restore("denoise", VolumeFrom(sent, shape), {.type = VoxelType::kUint8});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->voxels == sent);
}

TEST_F(Restore, KeepsWithinSmallMessages) {
  const std::string sent = Bytes(100000);
  daemon_.SetRestore({.part_bytes = 4096});
  daemon_.SetPredict([&](const FakeRequest& request) {
    EXPECT_THAT(request.part_bytes, Each(testing::Le(size_t{8192})));
    return Restored({1, 10, 10000, VoxelType::kUint8}, request.picture);
  });
  const auto answer =
      ConnectTo(daemon_.url(), {.max_message_bytes = 16384})->Restore("denoise", VolumeFrom(sent));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->voxels == sent);
}

TEST_F(Restore, ReportsItsProgress) {
  daemon_.SetRestore({.progress = {0, 0.25, std::numeric_limits<double>::quiet_NaN(), -3, 7, 1}});
  AnswerWith({1, 1, 2, VoxelType::kUint8}, "ab");
  std::vector<double> reported;
  const auto answer = ConnectTo(daemon_.url())->Restore("denoise", VolumeFrom("x"), {}, [&](double done) {
    reported.push_back(done);
    return true;
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(reported, ElementsAre(0, 0.25, 0, 0, 1, 1));
}

TEST_F(Restore, IsCancelledByTheCaller) {
  daemon_.SetRestore({.progress = {0.5}, .endless = true});
  const auto answer = ConnectTo(daemon_.url())->Restore("denoise", VolumeFrom("x"), {}, [](double done) {
    return done < 0.5;
  });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(Restore, IsNotRetriedAfterTheCallerCancelledIt) {
  daemon_.SetRestore({.progress = {0.5}, .endless = true});
  const auto answer =
      ConnectTo(daemon_.url(), {.retry = true})->Restore("denoise", VolumeFrom("x"), {}, [](double done) {
        return done < 0.5;
      });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(daemon_.restores(), 1);
}

TEST_F(Restore, KeepsToItsTimeout) {
  daemon_.SetRestore({.progress = {0.5}, .endless = true});
  const auto answer =
      ConnectTo(daemon_.url(), {.timeout = absl::Milliseconds(100)})->Restore("denoise", VolumeFrom("x"));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("within 100ms"));
}

// The volume is far larger than the connection buffers: the client is still writing when the daemon ends the
// stream.
TEST_F(Restore, ReportsWhyTheDaemonEndedTheStreamEarly) {
  absl::Status busy = absl::ResourceExhaustedError("volumes have at most 100 voxels");
  SetRetryAfter(busy, "250");
  daemon_.SetRestore({.early = busy});
  VolumeSource endless;
  endless.bytes = int64_t{1} << 40;
  endless.read = [](char* to, size_t max) -> absl::StatusOr<size_t> {
    std::fill_n(to, max, 'x');
    return max;
  };
  const absl::Status status = ConnectTo(daemon_.url())->Restore("denoise", endless).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "volumes have at most 100 voxels");
  EXPECT_EQ(RetryAfter(status), absl::Milliseconds(250));
}

TEST_F(Restore, KeepsTheDaemonsStatusAfterTheVolume) {
  daemon_.SetPredict(
      [](const FakeRequest&) { return absl::InvalidArgumentError("restoration.tiff: not a TIFF file"); });
  EXPECT_EQ(StatusOf(), absl::InvalidArgumentError("restoration.tiff: not a TIFF file"));
}

TEST_F(Restore, ReportsAnUnreachableDaemon) {
  std::string url;
  {
    FakeDaemon gone;
    url = gone.url();
  }
  const absl::Status status = ConnectTo(url)->Restore("denoise", VolumeFrom("x")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsUnreachable(status));
}

TEST_F(Restore, ReturnsTheErrorOfItsSource) {
  AnswerWith({1, 1, 2, VoxelType::kUint8}, "ab");
  VolumeSource broken;
  broken.bytes = 10;
  broken.read = [](char*, size_t) -> absl::StatusOr<size_t> { return absl::DataLossError("bad sector"); };
  const auto client = ConnectTo(daemon_.url());
  EXPECT_EQ(client->Restore("denoise", broken).status(), absl::DataLossError("bad sector"));
  VolumeSource shrunk = VolumeFrom("1234567");
  shrunk.bytes = 10;
  const absl::Status status = client->Restore("denoise", shrunk).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "the volume ends after 7 of its 10 bytes");
}

TEST_F(Restore, RejectsMoreVoxelsThanAnnounced) {
  AnswerWith({1, 2, 2, VoxelType::kUint8}, "12345");
  EXPECT_EQ(StatusOf(),
            absl::InternalError("the daemon sent more voxels than the 4 bytes that it announced"));
}

TEST_F(Restore, RejectsFewerVoxelsThanAnnounced) {
  daemon_.SetRestore({.part_bytes = 2});
  AnswerWith({1, 2, 2, VoxelType::kUint16}, "12345");
  EXPECT_EQ(StatusOf(), absl::InternalError("the daemon announced 8 bytes of voxels and sent 5"));
}

TEST_F(Restore, RejectsAnInvalidVolume) {
  for (const VolumeShape shape : {VolumeShape{0, 1, 1}, VolumeShape{1, -1, 1}, VolumeShape{1, 1, 0},
                                  VolumeShape{1 << 30, 1 << 30, 1 << 30}}) {
    AnswerWith(shape, "");
    const absl::Status status = StatusOf();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("answered with a volume of"));
  }
}

TEST_F(Restore, ReportsThatThereIsNoMemoryForTheAnswer) {
  AnswerWith({1 << 20, 1 << 20, 1 << 20, VoxelType::kUint8}, "");
  const absl::Status status = StatusOf();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not enough memory for the response's"));
}

TEST_F(Restore, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Disparity(); });
  const absl::Status status = StatusOf();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("answered with a disparity instead of a restoration"));
}

}  // namespace
}  // namespace saccade::client

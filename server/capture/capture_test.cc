#include "server/capture/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/capture/fault_room.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CaptureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/capture_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    options_.folder = name;
  }
  void TearDown() override {
    capture_.reset();
    std::filesystem::permissions(options_.folder, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(options_.folder);
  }

  Capture& Start() {
    Capture::Hooks hooks;
    hooks.count = [this](CaptureFate fate, int64_t bytes) {
      const absl::MutexLock lock(&mutex_);
      ++fates_[fate];
      bytes_ += bytes;
      while (fate == CaptureFate::kWritten && writer_waits_) writer_goes_on_.Wait(&mutex_);
    };
    hooks.warn = [this](const std::string& why) {
      const absl::MutexLock lock(&mutex_);
      warnings_.push_back(why);
    };
    auto capture = Capture::Create(options_, std::move(hooks), &clock_);
    EXPECT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
    return *capture_;
  }

  void Add(const std::string& request, absl::Status status = absl::OkStatus(), CapturedCall call = {}) {
    call.status = std::move(status);
    call.transport = "grpc";
    call.model = "m";
    call.arrival = call.ended = clock_.Now();
    const BytePieces whole(request);
    const BytePieces none;
    capture_->Add(std::move(call), {&whole, 1}, {&none, 1});
  }

  int AwaitFate(CaptureFate fate, int min) {
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return fates_[fate] >= min; };
    const absl::MutexLock lock(&mutex_, absl::Condition(&came));
    return fates_[fate];
  }

  FakeClock clock_;
  CaptureOptions options_;
  absl::Mutex mutex_;
  absl::CondVar writer_goes_on_;
  bool writer_waits_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<CaptureFate, int> fates_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Capture> capture_;
};

TEST_F(CaptureTest, CallsAreWritten) {
  Start();
  for (int i = 0; i < 10; ++i) Add("a request");
  AwaitFate(CaptureFate::kWritten, 10);
  capture_->Stop(absl::Seconds(1));
  const absl::MutexLock lock(&mutex_);
  EXPECT_GT(bytes_, 0);
  EXPECT_GE(capture_->folder_bytes(), bytes_);
}

TEST_F(CaptureTest, StoppingWritesWhatIsQueued) {
  Start();
  for (int i = 0; i < 100; ++i) Add("a request");
  capture_->Stop(absl::Seconds(1));
  EXPECT_EQ(AwaitFate(CaptureFate::kWritten, 0), 100);
  Add("too late");
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 1), 1);
}

TEST_F(CaptureTest, WhatIsNotWrittenInTimeIsCountedAndReported) {
  options_.queue_bytes = int64_t{1} << 40;
  Start();
  {
    const absl::MutexLock lock(&mutex_);
    writer_waits_ = true;
  }
  // The writer holds one, and the queue the others.
  for (int i = 0; i < 10; ++i) Add("a request");
  AwaitFate(CaptureFate::kWritten, 1);
  std::thread stopping([this] { capture_->Stop(absl::ZeroDuration()); });
  const auto is_stopping = [this] {
    Add("too late");
    return AwaitFate(CaptureFate::kQueueFull, 0) > 0;
  };
  int queued = 9;
  for (; !is_stopping(); ++queued) std::this_thread::yield();
  {
    const absl::MutexLock lock(&mutex_);
    writer_waits_ = false;
    writer_goes_on_.SignalAll();
  }
  stopping.join();
  EXPECT_EQ(AwaitFate(CaptureFate::kWritten, 0), 1);
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 0), queued + 1);
  const absl::MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(absl::StrCat(queued, " could not be written in time"))));
}

TEST_F(CaptureTest, AFullQueueDropsAtOnceAndRecovers) {
  options_.queue_bytes = 10'000;
  Start();
  {
    const absl::MutexLock lock(&mutex_);
    writer_waits_ = true;
  }
  // Each takes 1024 bytes beside its own: the writer holds one, and the queue the others.
  for (int i = 0; i < 10; ++i) Add(std::string(1000, 'x'));
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 0), 6);
  {
    const absl::MutexLock lock(&mutex_);
    writer_waits_ = false;
    writer_goes_on_.SignalAll();
  }
  AwaitFate(CaptureFate::kWritten, 4);
  capture_->Stop(absl::Seconds(1));
  EXPECT_EQ(AwaitFate(CaptureFate::kWritten, 0), 4);
}

TEST_F(CaptureTest, ACallLargerThanTheQueueIsDropped) {
  options_.queue_bytes = 100'000;
  Start();
  Add(std::string(100'000, 'x'));
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 1), 1);
}

// A client chooses the length of a path, of headers, and of what an error repeats.
TEST_F(CaptureTest, WhatIsBesideTheBodiesCounts) {
  options_.queue_bytes = 10'000;
  Start();
  const std::string large(10'000, 'x');
  CapturedCall path, headers, answer_headers, id;
  path.target = id.id = large;
  headers.headers = {{"content-type", large}};
  answer_headers.answer_headers = {{large, ""}};
  for (const CapturedCall& call : {path, headers, answer_headers, id}) Add("", absl::OkStatus(), call);
  Add("", absl::NotFoundError(large));
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 5), 5);
}

TEST_F(CaptureTest, WithoutPixelsNoBodyIsHeld) {
  options_.pixels = CapturedPixels::kNone;
  options_.queue_bytes = 10'000;
  Start();
  Add(std::string(1'000'000, 'x'));
  EXPECT_EQ(AwaitFate(CaptureFate::kWritten, 1), 1);
  EXPECT_EQ(AwaitFate(CaptureFate::kQueueFull, 0), 0);
}

TEST_F(CaptureTest, AFolderThatIsGoneLosesCallsAndIsReportedOnce) {
  Start();
  std::filesystem::remove_all(options_.folder);
  Add("one");
  AwaitFate(CaptureFate::kWriteFailed, 1);
  Add("two");
  AwaitFate(CaptureFate::kWriteFailed, 2);
  clock_.Advance(absl::Seconds(2));
  Add("three");
  AwaitFate(CaptureFate::kWriteFailed, 3);
  std::filesystem::create_directory(options_.folder);
  const absl::MutexLock lock(&mutex_);
  ASSERT_EQ(warnings_.size(), 1);
  EXPECT_THAT(warnings_[0], HasSubstr("cannot be created: No such file or directory"));
}

TEST_F(CaptureTest, TheRateIsTheModelsOwnOrTheDefault) {
  options_.choice = {.rate = 0, .models = {{"all", 1.0}, {"some", 0.3}}};
  const Capture& capture = Start();
  std::map<std::string, int> chosen;
  for (int i = 0; i < 10'000; ++i) {
    for (const char* model : {"all", "some", "other"})
      chosen[model] += capture.Wants(model, absl::OkStatus()) ? 1 : 0;
  }
  EXPECT_EQ(chosen["all"], 10'000);
  EXPECT_EQ(chosen["other"], 0);
  // Seven standard deviations.
  EXPECT_NEAR(chosen["some"], 3000, 320);
}

TEST_F(CaptureTest, FaultsAreAlwaysWantedAndRejectionsAreNot) {
  options_.choice.rate = 0;
  const Capture& capture = Start();
  EXPECT_TRUE(capture.Wants("m", absl::InvalidArgumentError("")));
  EXPECT_TRUE(capture.Wants("m", absl::InternalError("")));
  EXPECT_TRUE(capture.Wants("m", absl::NotFoundError("")));
  EXPECT_FALSE(capture.Wants("m", absl::ResourceExhaustedError("")));
  EXPECT_FALSE(capture.Wants("m", absl::UnavailableError("")));
  EXPECT_FALSE(capture.Wants("m", absl::DeadlineExceededError("")));
  EXPECT_FALSE(capture.Wants("m", absl::CancelledError("")));
}

// Otherwise who sends wrong calls deletes what was captured of the others.
TEST_F(CaptureTest, WrongCallsLeaveRoomForTheOthers) {
  options_.max_bytes = 1 << 20;
  Start();
  const auto noise = [](int64_t size) {
    std::minstd_rand random(1);
    std::string bytes(static_cast<size_t>(size), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
    return bytes;
  };
  const auto written = [this] {
    const absl::MutexLock lock(&mutex_);
    return bytes_;
  };
  int calls = 0;
  const auto send = [&](int64_t size, const absl::Status& status) {
    Add(noise(size), status);
    AwaitFate(CaptureFate::kWritten, ++calls);
  };
  send(100'000, absl::OkStatus());
  const int64_t honest = written();
  EXPECT_GT(honest, 100'000);
  for (int i = 0; i < 10; ++i) send(100'000, absl::InvalidArgumentError("no picture"));
  EXPECT_LT(written() - honest, (1 << 20) / 4 + 20'000) << "eight of them are hashes";
  // A fault of the daemon is told in full.
  const int64_t before = written();
  send(100'000, absl::InternalError("oops"));
  EXPECT_GT(written() - before, 100'000);
  // Even hashes come to an end.
  for (int i = 0; i < 5'000; ++i) {
    Add("x", absl::NotFoundError("no such model"));
    const absl::MutexLock lock(&mutex_);
    if (fates_[CaptureFate::kTooManyFaults] > 0) break;
  }
  AwaitFate(CaptureFate::kTooManyFaults, 1);
  EXPECT_LT(written(), (1 << 20) / 8 * 3 + 2 * honest + 10'000);
}

TEST(FaultRoomTest, RoomComesBackWhileCallsGoOn) {
  FaultRoom room(1 << 20, absl::Hours(1));
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  room.Add(1 << 19, now);
  EXPECT_FALSE(room.HasRoom(now));
  // Less than a byte becomes free between two looks.
  for (int i = 0; i < 360'000; ++i) {
    now += absl::Milliseconds(10);
    room.HasRoom(now);
  }
  EXPECT_TRUE(room.HasRoom(now));
}

TEST_F(CaptureTest, IsSwitchedWhileItRuns) {
  Capture& capture = Start();
  EXPECT_TRUE(capture.enabled());
  ASSERT_TRUE(capture.Change({.enabled = false}).ok());
  EXPECT_FALSE(capture.enabled());
  EXPECT_FALSE(capture.Wants("m", absl::InternalError("")));
  EXPECT_TRUE(absl::IsInvalidArgument(capture.Change({.rate = 1.5})));
  EXPECT_TRUE(absl::IsInvalidArgument(capture.Change({.models = {{"m", -0.1}}})));
  EXPECT_FALSE(capture.choice().enabled);
  ASSERT_TRUE(capture.Change({.enabled = true, .rate = 0.5}).ok());
  EXPECT_EQ(capture.choice().rate, 0.5);
}

TEST_F(CaptureTest, AFolderThatCannotBeUsedIsAnErrorAtTheStart) {
  options_.folder += "/no/where";
  EXPECT_TRUE(absl::IsFailedPrecondition(Capture::Create(options_, {}, &clock_).status()));
  options_.folder.resize(options_.folder.size() - std::string("/no/where").size());
}

}  // namespace
}  // namespace saccade::server

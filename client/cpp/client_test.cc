#include "client/cpp/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/status.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Classification Tabby() {
  Classification answer;
  answer.model = "sanet";
  answer.version = 3;
  answer.classes = {{281, "tabby", 0.75f, 4.5f}, {282, "", 0.25f, 3.5f}};
  answer.timings.decode = absl::Microseconds(1500);
  answer.timings.queue = absl::Microseconds(250);
  answer.timings.infer = absl::Milliseconds(7);
  answer.timings.total = absl::Seconds(1) + absl::Nanoseconds(5);
  answer.batch_size = 4;
  answer.picture_width = 640;
  answer.picture_height = 480;
  return answer;
}

TEST(Client, SendsThePictureAsItIsAndReadsTheAnswer) {
  FakeDaemon daemon;
  const std::string picture("\x89PNG\0\xff", 6);
  daemon.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<Classification> {
    EXPECT_EQ(request.model, "sanet");
    EXPECT_EQ(request.picture, picture);
    EXPECT_EQ(request.request.version, 3);
    EXPECT_EQ(request.classify.top_k, 2);
    EXPECT_EQ(request.request.priority, -7);
    Classification answer = Tabby();
    answer.request_id = request.request.request_id;
    return answer;
  });
  const auto client = ConnectTo(daemon.url());

  const auto answer = client->Classify(
      "sanet", picture, {.request = {.version = 3, .priority = -7, .request_id = "abc"}, .top_k = 2});

  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->model, "sanet");
  EXPECT_EQ(answer->version, 3);
  EXPECT_EQ(answer->request_id, "abc");
  ASSERT_EQ(answer->classes.size(), 2u);
  EXPECT_EQ(answer->classes[0].index, 281);
  EXPECT_EQ(answer->classes[0].label, "tabby");
  EXPECT_EQ(answer->classes[0].probability, 0.75f);
  EXPECT_EQ(answer->classes[0].logit, 4.5f);
  EXPECT_EQ(answer->timings.decode, absl::Microseconds(1500));
  EXPECT_EQ(answer->timings.queue, absl::Microseconds(250));
  EXPECT_EQ(answer->timings.infer, absl::Milliseconds(7));
  EXPECT_EQ(answer->timings.total, absl::Seconds(1) + absl::Nanoseconds(5));
  EXPECT_GT(answer->timings.round_trip, absl::ZeroDuration());
  EXPECT_EQ(answer->batch_size, 4);
  EXPECT_EQ(answer->picture_width, 640);
  EXPECT_EQ(answer->picture_height, 480);
}

TEST(Client, AsksAboutARegionAndForAttention) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_TRUE(request.request.region.has_value());
    EXPECT_EQ(request.request.region->x, 3);
    EXPECT_EQ(request.request.region->height, 6);
    EXPECT_TRUE(request.request.explain.has_value());
    EXPECT_EQ(request.request.explain->layer, "stage3");
    EXPECT_EQ(request.request.explain->max_maps, 2);
    EXPECT_EQ(request.request.explain->positions.size(), 1U);
    EXPECT_EQ(request.request.explain->positions.at(0).x, 0.25F);
    EXPECT_EQ(request.request.explain->positions.at(0).y, 1);
    Classification answer = Tabby();
    answer.explanation =
        Explanation{.layer = "stage3", .maps = {{"head 0", 2, 1, "png", -1, 1}}, .available = 4};
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  const RequestOptions request{
      .region = Region{3, 4, 5, 6},
      .explain = Explain{.layer = "stage3", .max_maps = 2, .positions = {{0.25F, 1}}}};
  const auto answer = client->Classify("sanet", "picture", {.request = request});
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_TRUE(answer->explanation);
  EXPECT_EQ(answer->explanation->layer, "stage3");
  EXPECT_EQ(answer->explanation->available, 4);
  ASSERT_EQ(answer->explanation->maps.size(), 1);
  EXPECT_EQ(answer->explanation->maps[0].name, "head 0");
  EXPECT_EQ(answer->explanation->maps[0].png, "png");
  EXPECT_EQ(answer->explanation->maps[0].min, -1);
}

TEST(Client, SendsTiles) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_TRUE(request.request.tiles.has_value());
    EXPECT_EQ(request.request.tiles->size, 640);
    EXPECT_EQ(request.request.tiles->overlap, 64);
    EXPECT_FALSE(request.request.tiles->whole);
    return Tabby();
  });
  const auto client = ConnectTo(daemon.url());
  const RequestOptions request{.tiles = Tiles{.size = 640, .overlap = 64}};
  EXPECT_TRUE(client->Classify("sanet", "picture", {.request = request}).ok());
}

TEST(Client, Detects) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, "street");
    EXPECT_EQ(request.request.priority, 4);
    EXPECT_EQ(request.detect.score_threshold, 0.25f);
    EXPECT_EQ(request.detect.top_k, 7);
    EXPECT_THAT(request.detect.classes, ElementsAre(3, 1));
    EXPECT_TRUE(request.detect.masks);
    EXPECT_EQ(request.detect.mask_threshold, 0.75f);
    Detections answer;
    answer.model = "rcnn";
    answer.picture_width = 7;
    answer.items = {{{1, 2, 3.5f, 4},
                     0.5f,
                     3,
                     "car",
                     RleMask{5, 7, ";320009", 9},
                     {},
                     {},
                     {},
                     {{1.5f, -2, 0.25f}, {3, 4, 1}}},
                    {{}, 0.25f, 1, "", {}, {}, {}, {}}};
    return answer;
  });
  DetectOptions options;
  options.request.priority = 4;
  options.score_threshold = 0.25f;
  options.top_k = 7;
  options.classes = {3, 1};
  options.mask_threshold = 0.75f;
  const auto answer = ConnectTo(daemon.url())->Detect("rcnn", "street", options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->model, "rcnn");
  EXPECT_EQ(answer->picture_width, 7);
  EXPECT_GT(answer->timings.round_trip, absl::ZeroDuration());
  ASSERT_EQ(answer->items.size(), 2u);
  EXPECT_EQ(answer->items[0].box.x_max, 3.5f);
  EXPECT_EQ(answer->items[0].score, 0.5f);
  EXPECT_EQ(answer->items[0].class_index, 3);
  EXPECT_EQ(answer->items[0].label, "car");
  ASSERT_TRUE(answer->items[0].mask.has_value());
  EXPECT_EQ(answer->items[0].mask->height, 5);
  EXPECT_EQ(answer->items[0].mask->counts, ";320009");
  EXPECT_EQ(answer->items[0].mask->area, 9);
  ASSERT_EQ(answer->items[0].keypoints.size(), 2u);
  EXPECT_EQ(answer->items[0].keypoints[0].x, 1.5f);
  EXPECT_EQ(answer->items[0].keypoints[0].y, -2);
  EXPECT_EQ(answer->items[0].keypoints[0].score, 0.25f);
  EXPECT_EQ(answer->items[0].keypoints[1].x, 3);
  EXPECT_FALSE(answer->items[1].mask.has_value());
  EXPECT_TRUE(answer->items[1].keypoints.empty());
}

TEST(Client, SendsNoThresholdsByDefault) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.detect.score_threshold, std::nullopt);
    EXPECT_EQ(request.detect.mask_threshold, std::nullopt);
    EXPECT_FALSE(request.detect.masks);
    return Detections();
  });
  const auto answer = ConnectTo(daemon.url())->Detect("rcnn", "x", {.masks = false});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->items.empty());
}

TEST(Client, Segments) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    Segmentation answer;
    answer.width = 2;
    answer.height = 1;
    answer.format = request.segment.format;
    if (answer.format != LabelMapFormat::kNone) answer.label_map = std::string("\0\x0f", 2);
    answer.areas = {{15, "person", 1, 0.5f}, {0, "", 1, 0.5f}};
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  for (const LabelMapFormat format : {LabelMapFormat::kPng, LabelMapFormat::kRaw, LabelMapFormat::kNone}) {
    const auto answer = client->Segment("deeplab", "x", {.format = format});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->format, format);
    EXPECT_EQ(answer->width, 2);
    EXPECT_EQ(answer->height, 1);
    EXPECT_EQ(answer->label_map.size(), format == LabelMapFormat::kNone ? 0u : 2u);
    ASSERT_EQ(answer->areas.size(), 2u);
    EXPECT_EQ(answer->areas[0].class_index, 15);
    EXPECT_EQ(answer->areas[0].label, "person");
    EXPECT_EQ(answer->areas[0].pixels, 1);
    EXPECT_EQ(answer->areas[0].fraction, 0.5f);
  }
}

TEST(Client, SendsBothPicturesOfAPair) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, "left");
    EXPECT_EQ(request.right, "right");
    EXPECT_EQ(request.request.version, 2);
    Disparity answer;
    answer.width = 1;
    answer.height = 2;
    answer.format = request.stereo.format;
    answer.map = "12345678";
    answer.min = 1.5f;
    answer.max = 3;
    answer.mean = 2.25f;
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  for (const DisparityFormat format : {DisparityFormat::kPng16, DisparityFormat::kFloat}) {
    const auto answer =
        client->Stereo("psmnet", "left", "right", {.request = {.version = 2}, .format = format});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->format, format);
    EXPECT_EQ(answer->width, 1);
    EXPECT_EQ(answer->height, 2);
    EXPECT_EQ(answer->map, "12345678");
    EXPECT_EQ(answer->min, 1.5f);
    EXPECT_EQ(answer->max, 3);
    EXPECT_EQ(answer->mean, 2.25f);
  }
}

TEST(Client, AsksForDepth) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, "street");
    EXPECT_EQ(request.right, "");
    EXPECT_EQ(request.request.version, 2);
    EXPECT_TRUE(request.stereo.size.has_value());
    DepthMap answer;
    answer.width = 1;
    answer.height = 2;
    answer.format = request.stereo.format;
    answer.map = "12345678";
    answer.min = 1.5f;
    answer.max = 3;
    answer.mean = 2.25f;
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  for (const DisparityFormat format : {DisparityFormat::kPng16, DisparityFormat::kFloat}) {
    const auto answer = client->Depth(
        "dpt", "street", {.request = {.version = 2}, .format = format, .size = OutputSize{1, 2}});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->format, format);
    EXPECT_EQ(answer->width, 1);
    EXPECT_EQ(answer->height, 2);
    EXPECT_EQ(answer->map, "12345678");
    EXPECT_EQ(answer->min, 1.5f);
    EXPECT_EQ(answer->max, 3);
    EXPECT_EQ(answer->mean, 2.25f);
  }
  daemon.SetPredict([](const FakeRequest&) { return Classification(); });
  EXPECT_THAT(std::string(client->Depth("dpt", "street").status().message()),
              HasSubstr("answered with a classification instead of a depth map"));
}

TEST(Client, AsksForAnEmbedding) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, "street");
    EXPECT_EQ(request.request.version, 2);
    Embedding answer;
    answer.model = "dino";
    answer.values = {0.5f, -0.25f, 3};
    return answer;
  });
  const auto client = ConnectTo(daemon.url());
  const auto answer = client->Embed("dino", "street", {.request = {.version = 2}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->model, "dino");
  EXPECT_THAT(answer->values, ElementsAre(0.5f, -0.25f, 3));
}

Actions TwoJumps() {
  Actions answer;
  answer.model = "tal";
  answer.items = {{0.5, 2.25, 0.75f, 3, "jump", 5, 22.5f}, {61, 62, 0.25f, 4, "", 610, 620}};
  answer.frames = 700;
  answer.frames_per_second = 10;
  return answer;
}

TEST(Client, FindsActionsInAVideo) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.picture, "video");
    EXPECT_TRUE(request.frames.empty());
    EXPECT_EQ(request.request.priority, 2);
    EXPECT_EQ(request.actions.score_threshold, 0.25f);
    EXPECT_EQ(request.actions.top_k, 7);
    EXPECT_THAT(request.actions.classes, ElementsAre(3, 4));
    return TwoJumps();
  });
  ActionOptions options;
  options.request.priority = 2;
  options.score_threshold = 0.25f;
  options.top_k = 7;
  options.classes = {3, 4};
  const auto answer = ConnectTo(daemon.url())->Actions("tal", "video", options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->frames, 700);
  EXPECT_EQ(answer->frames_per_second, 10);
  ASSERT_EQ(answer->items.size(), 2u);
  EXPECT_EQ(answer->items[0].start_seconds, 0.5);
  EXPECT_EQ(answer->items[0].end_seconds, 2.25);
  EXPECT_EQ(answer->items[0].score, 0.75f);
  EXPECT_EQ(answer->items[0].class_index, 3);
  EXPECT_EQ(answer->items[0].label, "jump");
  EXPECT_EQ(answer->items[0].start_frame, 5);
  EXPECT_EQ(answer->items[0].end_frame, 22.5f);
}

TEST(Client, FindsActionsInFrames) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_THAT(request.frames, ElementsAre("one", "two"));
    EXPECT_EQ(request.frames_per_second, 12.5);
    EXPECT_EQ(request.actions.score_threshold, std::nullopt);
    return TwoJumps();
  });
  const auto answer = ConnectTo(daemon.url())->Actions("tal", {"one", "two"}, 12.5);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->items.size(), 2u);
}

TEST(Client, ReportsAnAnswerOfAnotherTask) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    Detections answer;
    answer.model = "rcnn";
    return answer;
  });
  const absl::Status status = ConnectTo(daemon.url())->Classify("rcnn", "x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "model 'rcnn' answered with detections instead of a classification; check the model's task with "
            "`saccade models`");
}

TEST(Client, KeepsCodeMessageDetailsAndRetryHintOfAnError) {
  FakeDaemon daemon;
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  busy.SetPayload(kDetailsPayload, absl::Cord(std::string("\x08\x08\0", 3)));
  SetRetryAfter(busy, "250");
  daemon.FailWith(busy);
  const auto client = ConnectTo(daemon.url());

  const absl::Status status = client->Classify("sanet", "x").status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the queue is full");
  EXPECT_EQ(status.GetPayload(kDetailsPayload), absl::Cord(std::string("\x08\x08\0", 3)));
  EXPECT_EQ(RetryAfter(status), absl::Milliseconds(250));
  EXPECT_FALSE(IsUnreachable(status));
}

TEST(Client, KeepsDetailsAndRetryHintOfADeadlineThatTheDaemonPredicts) {
  FakeDaemon daemon;
  absl::Status late = absl::DeadlineExceededError("the answer would be late");
  late.SetPayload(kDetailsPayload, absl::Cord("PREDICTED_LATE"));
  SetRetryAfter(late, "250");
  daemon.FailWith(late);

  const absl::Status status = ConnectTo(daemon.url())->Classify("sanet", "x").status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the answer would be late"));
  EXPECT_EQ(status.GetPayload(kDetailsPayload), absl::Cord("PREDICTED_LATE"));
  EXPECT_EQ(RetryAfter(status), absl::Milliseconds(250));
}

TEST(Client, DistinguishesAnUnreachableFromAnUnavailableDaemon) {
  std::string url;
  {
    FakeDaemon daemon;
    url = daemon.url();
    daemon.FailWith(absl::UnavailableError("draining"));
    const absl::Status said = ConnectTo(url)->ListModels().status();
    EXPECT_EQ(said.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(said.message(), "draining");
    EXPECT_FALSE(IsUnreachable(said));
  }
  const absl::Status gone = ConnectTo(url)->ListModels().status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsUnreachable(gone));
  EXPECT_THAT(std::string(gone.message()), HasSubstr(absl::StrCat("no daemon answers at ", url)));
}

TEST(Client, ReportsItsTimeout) {
  absl::Notification release;
  FakeDaemon daemon;
  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    release.WaitForNotification();
    return Tabby();
  });
  const auto client = ConnectTo(daemon.url(), {.timeout = absl::Milliseconds(50)});
  const absl::Status status = client->Classify("sanet", "x").status();
  release.Notify();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 50ms"));
}

TEST(Client, RejectsATooLargeRequestWithoutSendingIt) {
  FakeDaemon daemon;
  const auto client = ConnectTo(daemon.url(), {.max_message_bytes = 1000});
  const absl::Status status = client->Classify("sanet", std::string(1000, 'x')).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_message_bytes"));
}

TEST(Client, SendsMoreThanGrpcsOwnLimit) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<Classification> {
    Classification answer = Tabby();
    answer.batch_size = static_cast<int>(request.picture.size());
    return answer;
  });
  const auto answer = ConnectTo(daemon.url())->Classify("sanet", std::string(20 << 20, 'x'));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->batch_size, 20 << 20);
}

// Four calls meet at a barrier inside the daemon: they can return only if they run concurrently.
TEST(Client, RunsCallsOfSeveralThreadsConcurrently) {
  constexpr int kThreads = 4;
  FakeDaemon daemon;
  auto* barrier = new absl::Barrier(kThreads);
  daemon.SetPredict([&](const FakeRequest&) -> absl::StatusOr<Classification> {
    if (barrier->Block()) delete barrier;
    return Tabby();
  });
  const auto client = ConnectTo(daemon.url());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(client->Classify("sanet", "x").ok()); });
  }
  for (std::thread& thread : threads) thread.join();
}

// The address lists two daemons, like a name with two addresses. The test makes calls until both daemons have
// received one; a client that stays with the first daemon never gets there.
TEST(Client, DistributesCallsOverAllAddresses) {
  FakeDaemon daemons[2];
  std::atomic<int> asked[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    daemons[i].SetPredict([&asked, i](const FakeRequest&) -> absl::StatusOr<Classification> {
      ++asked[i];
      return Tabby();
    });
  }
  const auto client = ConnectTo(absl::StrCat("ipv4:", daemons[0].url(), ",", daemons[1].url()));
  constexpr int kManyCalls = 10000;
  for (int i = 0; i < kManyCalls && (asked[0] == 0 || asked[1] == 0); ++i) {
    ASSERT_TRUE(client->Classify("sanet", "x").ok());
  }
  EXPECT_GT(asked[0], 0);
  EXPECT_GT(asked[1], 0);
  const int before = asked[0] - asked[1];
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Classify("sanet", "x").ok());
  EXPECT_EQ(asked[0] - asked[1], before);
}

TEST(Client, ReadsModels) {
  Model model;
  model.name = "sanet";
  model.version = 2;
  model.state = ModelState::kUnavailable;
  model.reason = "a tensor is missing";
  model.architecture = "sanet";
  model.task = "classification";
  model.options = {{"classes", "1000"}};
  model.input_width = 224;
  model.input_height = 192;
  model.buckets = "stride:32";
  model.views = 2;
  model.max_frames = 768;
  model.frames_per_second = 12.5;
  model.max_voxels = int64_t{1} << 33;
  model.classes = 2;
  model.labels = {"cat", "dog"};
  model.max_batch_size = 8;
  model.queued = 5;
  model.load_duration = absl::Milliseconds(120);
  FakeDaemon daemon;
  daemon.SetModels({model});
  const auto client = ConnectTo(daemon.url());

  const auto listed = client->ListModels();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  const auto got = client->GetModel("sanet");
  ASSERT_TRUE(got.ok()) << got.status();
  for (const Model& read : {listed->front(), *got}) {
    EXPECT_EQ(read.name, "sanet");
    EXPECT_EQ(read.version, 2);
    EXPECT_EQ(read.state, ModelState::kUnavailable);
    EXPECT_EQ(read.reason, "a tensor is missing");
    EXPECT_EQ(read.architecture, "sanet");
    EXPECT_EQ(read.task, "classification");
    EXPECT_EQ(read.options, model.options);
    EXPECT_EQ(read.input_width, 224);
    EXPECT_EQ(read.input_height, 192);
    EXPECT_EQ(read.buckets, "stride:32");
    EXPECT_EQ(read.views, 2);
    EXPECT_EQ(read.max_frames, 768);
    EXPECT_EQ(read.frames_per_second, 12.5);
    EXPECT_EQ(read.max_voxels, int64_t{1} << 33);
    EXPECT_EQ(read.classes, 2);
    EXPECT_THAT(read.labels, ElementsAre("cat", "dog"));
    EXPECT_EQ(read.max_batch_size, 8);
    EXPECT_EQ(read.queued, 5);
    EXPECT_EQ(read.load_duration, absl::Milliseconds(120));
  }
  EXPECT_EQ(client->GetModel("nonesuch").status().code(), absl::StatusCode::kNotFound);
}

TEST(Client, ReadsHealthAndMetadata) {
  FakeDaemon daemon;
  daemon.SetHealth("sanet", false);
  const auto client = ConnectTo(daemon.url());
  EXPECT_EQ(*client->CheckHealth(), Health::kServing);
  EXPECT_EQ(*client->CheckHealth("sanet"), Health::kNotServing);
  EXPECT_EQ(client->CheckHealth("nonesuch").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(*client->ServerLive());
  EXPECT_TRUE(*client->ServerReady());
  const auto metadata = client->GetServerMetadata();
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->name, "saccade");
  EXPECT_EQ(metadata->version, "1.2.3");
  EXPECT_THAT(metadata->extensions, ElementsAre("health"));
}

TEST(Client, WaitsUntilADaemonServes) {
  FakeDaemon daemon;
  daemon.SetHealth("", false);
  const auto client = ConnectTo(daemon.url());
  std::thread turn_on([&] {
    daemon.AwaitWatcher();
    daemon.SetHealth("", true);
  });
  EXPECT_TRUE(client->WaitUntilServing("", absl::Minutes(1)).ok());
  turn_on.join();
}

TEST(Client, StopsWaitingAtTheTimeout) {
  FakeDaemon daemon;
  daemon.SetHealth("sanet", false);
  const absl::Status status = ConnectTo(daemon.url())->WaitUntilServing("sanet", absl::Milliseconds(50));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model 'sanet'"));
}

TEST(Client, SaysAtTheTimeoutWhyNothingIsServed) {
  std::string url;
  {
    FakeDaemon daemon;
    url = daemon.url();
    daemon.FailHealthWith(absl::UnavailableError("draining"));
    const absl::Status draining = ConnectTo(url)->WaitUntilServing("", absl::Seconds(1));
    EXPECT_EQ(draining.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(draining.message(),
              absl::StrCat("the daemon at ", url, " was not serving within 1s: draining"));

    daemon.FailHealthWith(absl::OkStatus());
    daemon.SetHealth("sanet", false);
    EXPECT_THAT(std::string(ConnectTo(url)->WaitUntilServing("sanet", absl::Seconds(1)).message()),
                HasSubstr("within 1s: its health is NOT_SERVING"));
  }
  const absl::Status gone = ConnectTo(url)->WaitUntilServing("", absl::Seconds(1));
  EXPECT_EQ(gone.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(gone.message()), HasSubstr(absl::StrCat("within 1s: no daemon answers at ", url)));
}

TEST(Client, DoesNotWaitForADaemonThatRefusesIt) {
  FakeDaemon daemon;
  const auto client = ConnectTo(daemon.url());
  for (const absl::Status& refusal :
       {absl::UnauthenticatedError("unknown token"), absl::PermissionDeniedError("not for this token"),
        absl::UnimplementedError("no health service")}) {
    daemon.FailHealthWith(refusal);
    const absl::Status status = client->WaitUntilServing("", absl::Seconds(30));
    EXPECT_EQ(status.code(), refusal.code());
    EXPECT_EQ(status.message(), refusal.message());
  }
}

TEST(Client, RejectsInvalidOptions) {
  EXPECT_EQ(Client::Connect({.url = "nowhere"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect({.timeout = absl::ZeroDuration()}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect({.max_message_bytes = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::client

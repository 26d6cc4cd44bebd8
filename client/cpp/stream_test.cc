#include "client/cpp/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/status.h"
#include "client/cpp/testing/connect_to.h"
#include "client/cpp/testing/fake_daemon.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<AnyAnswer> Echo(const FakeRequest& request) {
  Classification answer;
  answer.model = request.model;
  answer.request_id = request.request.request_id;
  answer.classes = {{request.classify.top_k, request.picture, 1, 2}};
  return answer;
}

ClassifyOptions Named(const std::string& id, int top_k = 1) {
  return {.request = {.request_id = id}, .top_k = top_k};
}

// Returns the next item; fails the test if there is none.
StreamItem NextOf(Stream& stream) {
  auto next = stream.Next();
  EXPECT_TRUE(next.ok()) << next.status();
  if (!next.ok() || !*next) {
    ADD_FAILURE() << "the stream has ended";
    return {-1, "", absl::InternalError("the stream has ended")};
  }
  return **std::move(next);
}

TEST(Stream, AnswersInOrderWhileASecondThreadSends) {
  FakeDaemon daemon;
  daemon.SetPredict(Echo);
  const auto client = ConnectTo(daemon.url());
  const auto stream = client->OpenStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  constexpr int kCount = 200;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      const absl::Status sent =
          (*stream)->Classify("m", absl::StrCat("picture ", i), Named(absl::StrCat("id ", i)));
      EXPECT_TRUE(sent.ok()) << sent;
    }
    (*stream)->SendDone();
  });
  for (int i = 0; i < kCount; ++i) {
    const StreamItem item = NextOf(**stream);
    EXPECT_EQ(item.index, i);
    EXPECT_EQ(item.request_id, absl::StrCat("id ", i));
    ASSERT_TRUE(item.answer.ok()) << item.answer.status();
    const auto& answer = std::get<Classification>(*item.answer);
    EXPECT_EQ(answer.classes.at(0).label, absl::StrCat("picture ", i));
    EXPECT_GT(answer.timings.round_trip, absl::ZeroDuration());
  }
  const auto end = (*stream)->Next();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
  sender.join();
}

TEST(Stream, AnItemsErrorConcernsThatItemAndHasARetryHint) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture != "bad") return Echo(request);
    absl::Status refused = absl::ResourceExhaustedError("the queue is full");
    SetRetryAfter(refused, "250");
    return refused;
  });
  const auto client = ConnectTo(daemon.url());
  const auto stream = *client->OpenStream();
  for (const char* picture : {"good", "bad", "good"}) {
    ASSERT_TRUE(stream->Classify("m", picture, Named("x")).ok());
  }
  stream->SendDone();
  EXPECT_TRUE(NextOf(*stream).answer.ok());
  const StreamItem bad = NextOf(*stream);
  EXPECT_EQ(bad.index, 1);
  EXPECT_EQ(bad.answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(bad.answer.status().message(), "the queue is full");
  EXPECT_EQ(RetryAfter(bad.answer.status()), absl::Milliseconds(250));
  EXPECT_TRUE(NextOf(*stream).answer.ok());
  EXPECT_FALSE((*stream->Next()).has_value());
}

TEST(Stream, TellsDepthFromDisparities) {
  FakeDaemon daemon;
  daemon.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    Embedding embedding;
    embedding.values = {1, 2};
    Disparity disparity;
    disparity.map = request.picture;
    return request.picture == "embed" ? AnyAnswer(embedding) : AnyAnswer(disparity);
  });
  const auto client = ConnectTo(daemon.url());
  const auto stream = *client->OpenStream();
  ASSERT_TRUE(stream->Depth("m", "depth", {}).ok());
  ASSERT_TRUE(stream->Stereo("m", "left", "right", {}).ok());
  ASSERT_TRUE(stream->Embed("m", "embed", {}).ok());
  stream->SendDone();
  const StreamItem depth = NextOf(*stream), stereo = NextOf(*stream), embed = NextOf(*stream);
  ASSERT_TRUE(depth.answer.ok() && stereo.answer.ok() && embed.answer.ok());
  EXPECT_EQ(std::get<DepthMap>(*depth.answer).map, "depth");
  EXPECT_EQ(std::get<Disparity>(*stereo.answer).map, "left");
  EXPECT_EQ(std::get<Embedding>(*embed.answer).values, (std::vector<float>{1, 2}));
}

TEST(Stream, ItemsHaveTheirTimeout) {
  FakeDaemon daemon;
  std::optional<absl::Duration> seen;
  daemon.SetPredict([&](const FakeRequest& request) {
    seen = request.timeout;
    return Echo(request);
  });
  const auto client = ConnectTo(daemon.url());
  const auto stream = *client->OpenStream({.item_timeout = absl::Milliseconds(1500)});
  ASSERT_TRUE(stream->Classify("m", "x", Named("x")).ok());
  EXPECT_TRUE(NextOf(*stream).answer.ok());
  EXPECT_EQ(seen, absl::Milliseconds(1500));
  const auto refused = client->OpenStream({.item_timeout = absl::ZeroDuration()});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Stream, UnansweredRequestsAreAnError) {
  FakeDaemon daemon;
  daemon.SetPredict(Echo);
  const auto client = ConnectTo(daemon.url());
  daemon.EndStreamsAfter(1, absl::OkStatus());
  const auto stream = *client->OpenStream();
  ASSERT_TRUE(stream->Classify("m", "a", Named("a")).ok());
  EXPECT_TRUE(NextOf(*stream).answer.ok());
  // The stream may have ended before this is written; Next returns the reason in either case.
  stream->Classify("m", "b", Named("b")).IgnoreError();
  const absl::Status end = stream->Next().status();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end.message()), HasSubstr("1 requests unanswered, from index 1 on"));
  EXPECT_EQ(stream->Next().status(), end);
}

TEST(Stream, AnErrorOfTheStreamIsTheDaemons) {
  FakeDaemon daemon;
  daemon.EndStreamsAfter(0, absl::UnavailableError("the daemon drains"));
  const auto client = ConnectTo(daemon.url());
  const auto stream = *client->OpenStream();
  const absl::Status end = stream->Next().status();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(end.message(), "the daemon drains");
  EXPECT_FALSE(IsUnreachable(end));
}

TEST(Stream, ATooLargeRequestIsRejectedAndTheStreamContinues) {
  FakeDaemon daemon;
  daemon.SetPredict(Echo);
  const auto client = Client::Connect({.url = daemon.url(), .max_message_bytes = 1000});
  ASSERT_TRUE(client.ok());
  const auto stream = *(*client)->OpenStream();
  EXPECT_EQ(stream->Classify("m", std::string(2000, 'x'), Named("large")).code(),
            absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(stream->Classify("m", "x", Named("small")).ok());
  stream->SendDone();
  EXPECT_EQ(NextOf(*stream).request_id, "small");
  EXPECT_FALSE((*stream->Next()).has_value());
}

TEST(Stream, MayBeCancelledFromAnotherThread) {
  FakeDaemon daemon;
  absl::Notification asked;
  absl::Notification done;
  daemon.SetPredict([&](const FakeRequest& request) {
    asked.Notify();
    done.WaitForNotification();
    return Echo(request);
  });
  const auto client = ConnectTo(daemon.url());
  const auto stream = *client->OpenStream();
  ASSERT_TRUE(stream->Classify("m", "x", Named("x")).ok());
  std::thread canceller([&] {
    asked.WaitForNotification();
    stream->Cancel();
  });
  EXPECT_EQ(stream->Next().status().code(), absl::StatusCode::kCancelled);
  done.Notify();
  canceller.join();
}

TEST(Stream, NoDaemonAtTheAddressIsUnreachable) {
  std::string url;
  {
    url = FakeDaemon().url();
  }
  const auto client = ConnectTo(url);
  const auto stream = *client->OpenStream({.timeout = absl::Seconds(30)});
  stream->Classify("m", "x", Named("x")).IgnoreError();
  const absl::Status end = stream->Next().status();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsUnreachable(end));
}

}  // namespace
}  // namespace saccade::client

#include "server/http/http_reply.h"

#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "server/net/testing/manual_loop.h"

namespace saccade::server {
namespace {

class KeepingResponder final : public Responder {
 public:
  void Respond(HttpResponse response) override { last = std::move(response); }

  std::optional<HttpResponse> last;
};

// Such as the charge of a large answer.
TEST(HttpReplyTest, WhatAResponseKeepsLivesUntilItWasSent) {
  for (const ContentCoding coding : {ContentCoding::kIdentity, ContentCoding::kGzip}) {
    ManualLoop loop;
    KeepingResponder responder;
    const auto path = std::make_shared<ReplyPath>(&loop, &responder);
    auto kept = std::make_shared<int>(1);
    const std::weak_ptr<int> watched = kept;
    HttpResponse response{.body = std::string(1000, 'a')};
    response.kept = std::move(kept);
    MakeReply(path, {.coding = coding, .max_bytes_on_loop = 2000})(std::move(response));
    ASSERT_TRUE(responder.last);
    EXPECT_EQ(responder.last->body.size() < 1000, coding == ContentCoding::kGzip);
    EXPECT_FALSE(watched.expired());
    responder.last.reset();
    EXPECT_TRUE(watched.expired());
    path->Cut();
  }
}

// A handler that ran on a pool, or a model's thread, compresses what is not large itself.
TEST(HttpReplyTest, AnswersThatAreMadeElsewhereAreCompressedThere) {
  KeepingResponder responder;
  ManualLoop loop;
  const auto path = std::make_shared<ReplyPath>(&loop, &responder);
  WorkPool full(0, 0);
  std::thread([&] {
    MakeReply(path, {.coding = ContentCoding::kGzip, .max_bytes_here = 1000, .pool = &full})(
        {.body = std::string(1000, 'x')});
  }).join();
  loop.RunUntilIdle();
  ASSERT_TRUE(responder.last);
  EXPECT_LT(responder.last->body.size(), 1000u);
  path->Cut();
}

TEST(HttpReplyTest, AResponseThatIsLostIsAnError) {
  ManualLoop loop;
  KeepingResponder responder;
  const auto path = std::make_shared<ReplyPath>(&loop, &responder);
  loop.FailNextPost();
  std::thread([&] {
    const HttpReply reply = MakeReply(path, {});
    EXPECT_THROW(reply({}), std::bad_alloc);
  }).join();
  loop.RunUntilIdle();
  ASSERT_TRUE(responder.last);
  EXPECT_EQ(responder.last->status, 500);
  path->Cut();
}

TEST(HttpReplyTest, AResponseThatThePoolLosesIsAnError) {
  ManualLoop loop;
  KeepingResponder responder;
  const auto path = std::make_shared<ReplyPath>(&loop, &responder);
  loop.FailNextPost();
  {
    WorkPool pool(1, 1);
    MakeReply(path, {.coding = ContentCoding::kGzip, .pool = &pool})({.body = std::string(1000, 'a')});
  }
  loop.RunUntilIdle();
  ASSERT_TRUE(responder.last);
  EXPECT_EQ(responder.last->status, 500);
  path->Cut();
}

}  // namespace
}  // namespace saccade::server

#include "server/protocols/rest/reply.h"

#include <stdexcept>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

// The thread that made the response, and its body.
struct Made {
  std::thread::id thread;
  HttpResponse response;
};

Made Reply(WorkPool* pool, int64_t bytes) {
  Made made;
  absl::Notification sent;
  ReplyWith(
      pool, "a", bytes,
      [&made](const absl::Status& room) {
        EXPECT_TRUE(room.ok()) << room;
        made.thread = std::this_thread::get_id();
        return HttpResponse{.body = "text"};
      },
      [&](HttpResponse response) {
        made.response = std::move(response);
        sent.Notify();
      });
  sent.WaitForNotification();
  EXPECT_EQ(made.response.body, "text");
  return made;
}

TEST(RestReplyTest, LongTextsAreMadeOnThePool) {
  WorkPool pool(1, 10);
  EXPECT_EQ(Reply(&pool, kMaxTextHere).thread, std::this_thread::get_id());
  EXPECT_NE(Reply(&pool, kMaxTextHere + 1).thread, std::this_thread::get_id());
  EXPECT_EQ(Reply(nullptr, kMaxTextHere + 1).thread, std::this_thread::get_id());
}

TEST(RestReplyTest, AFullPoolLeavesASmallTextHere) {
  absl::Notification begun;
  absl::Notification end;
  WorkPool pool(1, 1);
  ASSERT_TRUE(pool.Submit("a", [&] {
    begun.Notify();
    end.WaitForNotification();
  }));
  begun.WaitForNotification();
  ASSERT_TRUE(pool.Submit("a", [] {}));
  EXPECT_EQ(Reply(&pool, kMaxTextHere + 1).thread, std::this_thread::get_id());
  HttpResponse large;
  ReplyWith(
      &pool, "a", kMaxTextWithoutPool + 1,
      [](const absl::Status& room) { return HttpError(absl::IsResourceExhausted(room) ? 503 : 200, "busy"); },
      [&large](HttpResponse response) { large = std::move(response); });
  EXPECT_EQ(large.status, 503);
  end.Notify();
}

TEST(RestReplyTest, AnExceptionIsAnInternalError) {
  HttpResponse sent;
  ReplyWith(
      nullptr, "a", 0, [](const absl::Status&) -> HttpResponse { throw std::runtime_error("secret"); },
      [&sent](HttpResponse response) { sent = std::move(response); });
  EXPECT_EQ(sent.status, 500);
  EXPECT_EQ(sent.body, R"({"error":"internal error"})");
}

}  // namespace
}  // namespace saccade::server

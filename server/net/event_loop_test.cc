#include "server/net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/core/clock.h"

namespace saccade::server {
namespace {

std::unique_ptr<EventLoop> MakeLoop() {
  auto loop = EventLoop::Create("test-loop");
  EXPECT_TRUE(loop.ok()) << loop.status();
  return *std::move(loop);
}

// Runs `action` on the loop and waits for it.
void RunOn(EventLoop& loop, std::function<void()> action) {
  absl::Notification done;
  loop.Post([&] {
    action();
    done.Notify();
  });
  done.WaitForNotification();
}

// Waits for `notification`, which the loop gives, and until the tasks that run there now are over.
void Await(EventLoop& loop, absl::Notification& notification) {
  notification.WaitForNotification();
  RunOn(loop, [] {});
}

class HookWatcher final : public Watcher {
 public:
  explicit HookWatcher(std::function<void()> action) : action_(std::move(action)) {}
  void OnEvents(uint32_t /*events*/) override { action_(); }

 private:
  const std::function<void()> action_;
};

// Runs an action at the end of a round.
class EndHook final : public Watcher {
 public:
  explicit EndHook(std::function<void()> action) : action_(std::move(action)) {}
  void OnEvents(uint32_t /*events*/) override {}
  void OnEndOfRound() override { action_(); }

 private:
  const std::function<void()> action_;
};

// A descriptor that stays readable.
class Readable {
 public:
  Readable() : fd_(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Readable() { close(fd_); }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

TEST(EventLoopTest, TasksOfEachThreadKeepTheirOrder) {
  constexpr int kThreads = 4, kTasks = 2'000;
  std::vector<std::vector<int>> ran(kThreads);
  {
    const auto loop = MakeLoop();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kTasks; ++i) loop->Post([&ran, thread, i] { ran[thread].push_back(i); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    // The loop's end runs what was posted.
  }
  for (const std::vector<int>& tasks : ran) {
    ASSERT_EQ(tasks.size(), kTasks);
    for (int i = 0; i < kTasks; ++i) EXPECT_EQ(tasks[i], i);
  }
}

TEST(EventLoopTest, KnowsItsThreadAndItsTime) {
  const auto loop = MakeLoop();
  EXPECT_FALSE(loop->IsCurrent());
  const absl::Time before = Clock::Real()->Now();
  RunOn(*loop, [&] {
    EXPECT_TRUE(loop->IsCurrent());
    EXPECT_GE(loop->Now(), before);
    EXPECT_LE(loop->Now(), Clock::Real()->Now());
  });
}

TEST(EventLoopTest, TheEndOfTheRoundComesAfterItsTasks) {
  const auto loop = MakeLoop();
  std::string ran;
  absl::Notification done, go;
  EndHook again([&] {
    ran += 'a';
    done.Notify();
  });
  EndHook first([&] {
    ran += 'e';
    // Runs in the next round, without an event.
    loop->AtEndOfRound(&again);
  });
  EndHook second([&] { ran += 'f'; });
  loop->Post([&] { go.WaitForNotification(); });
  loop->Post([&] {
    loop->AtEndOfRound(&first);
    loop->AtEndOfRound(&second);
    ran += '1';
  });
  loop->Post([&] { ran += '2'; });
  go.Notify();
  Await(*loop, done);
  EXPECT_EQ(ran, "12efa");
}

TEST(EventLoopTest, OfSlowTasksOneRunsInEachRound) {
  const auto loop = MakeLoop();
  std::string ran;
  absl::Notification done;
  loop->Post([&] {
    loop->PostSlow([&] {
      ran += 'a';
      loop->Post([&] { ran += '2'; });
    });
    loop->PostSlow([&] {
      ran += 'b';
      throw std::runtime_error("no memory");
    });
    loop->PostSlow([&] {
      ran += 'c';
      done.Notify();
    });
    loop->Post([&] { ran += '1'; });
  });
  Await(*loop, done);
  EXPECT_EQ(ran, "a1b2c");
}

TEST(EventLoopTest, ATaskThatIsPostedByATaskRunsAfterIt) {
  const auto loop = MakeLoop();
  std::string ran;
  absl::Notification done;
  loop->Post([&] {
    loop->Post([&] {
      ran += '2';
      done.Notify();
    });
    ran += '1';
  });
  Await(*loop, done);
  EXPECT_EQ(ran, "12");
}

TEST(EventLoopTest, TimersRunWhenTheyAreDue) {
  const auto loop = MakeLoop();
  absl::Notification ran;
  std::unique_ptr<Timer> timer;
  absl::Time due;
  RunOn(*loop, [&] {
    timer = std::make_unique<Timer>(&loop->timers(), [&] { ran.Notify(); });
    due = loop->Now() + absl::Milliseconds(5);
    timer->Set(due);
  });
  ran.WaitForNotification();
  EXPECT_GE(Clock::Real()->Now(), due);
  RunOn(*loop, [&] { timer.reset(); });
}

// Both descriptors are ready in the same round; whichever comes first removes the other.
TEST(EventLoopTest, AWatcherThatWasRemovedGetsNoEventOfTheSameRound) {
  const auto loop = MakeLoop();
  for (int i = 0; i < 20; ++i) {
    const Readable one, two;
    int events = 0;
    absl::Notification done;
    std::unique_ptr<HookWatcher> first, second;
    // The loop must not touch them any more.
    EndHook destroy([&] {
      first.reset();
      second.reset();
      done.Notify();
    });
    const auto remove_both = [&] {
      if (++events > 1) return;
      loop->Unwatch(one.fd(), first.get());
      loop->Unwatch(two.fd(), second.get());
      loop->AtEndOfRound(&destroy);
    };
    first = std::make_unique<HookWatcher>(remove_both);
    second = std::make_unique<HookWatcher>(remove_both);
    RunOn(*loop, [&] {
      EXPECT_TRUE(loop->Watch(one.fd(), EPOLLIN, first.get()));
      EXPECT_TRUE(loop->Watch(two.fd(), EPOLLIN, second.get()));
    });
    Await(*loop, done);
    EXPECT_EQ(events, 1);
  }
}

TEST(EventLoopTest, EventsThatAreNotWatchedAreNotDelivered) {
  const auto loop = MakeLoop();
  const Readable readable;
  absl::Notification delivered;
  bool watched = false;
  HookWatcher watcher([&] {
    EXPECT_TRUE(watched);
    loop->Unwatch(readable.fd(), &watcher);
    delivered.Notify();
  });
  RunOn(*loop, [&] { loop->Watch(readable.fd(), 0, &watcher); });
  // A round with events would have come by now.
  RunOn(*loop, [] {});
  RunOn(*loop, [&] {
    watched = true;
    loop->Change(readable.fd(), EPOLLIN, &watcher);
  });
  Await(*loop, delivered);
}

TEST(EventLoopTest, AnExceptionEndsNeitherTheThreadNorOtherTasks) {
  const auto loop = MakeLoop();
  absl::Notification go;
  bool ran = false, ended = false;
  EndHook broken([] { throw std::runtime_error("no memory"); });
  EndHook next([&] { ended = true; });
  loop->Post([&] { go.WaitForNotification(); });
  loop->Post([] { throw std::runtime_error("no memory"); });
  loop->Post([] { throw 1; });
  loop->Post([&] {
    ran = true;
    loop->AtEndOfRound(&broken);
    loop->AtEndOfRound(&next);
  });
  go.Notify();
  RunOn(*loop, [] {});
  RunOn(*loop, [] {});
  EXPECT_TRUE(ran);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace saccade::server

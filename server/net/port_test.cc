#include "server/net/port.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/net/testing/net_client.h"
#include "server/net/testing/port_fixture.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// More than the system buffers between two sockets.
constexpr size_t kLarge = size_t{32} << 20;

std::string Pattern(size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i % 23);
  return bytes;
}

BytePieces Owned(std::string text) {
  auto owner = std::make_shared<std::string>(std::move(text));
  const std::string_view whole = *owner;
  return BytePieces(whole, std::move(owner));
}

TEST_F(PortTest, EchoesBothWaysAtOnce) {
  Open(Options());
  const std::string sent = Pattern(kLarge);
  NetClient client(port_->port());
  std::thread sending([&] {
    EXPECT_TRUE(client.Send(sent));
    client.EndSending();
  });
  EXPECT_TRUE(client.ReadToEnd() == sent);
  sending.join();
}

TEST_F(PortTest, ServesManyConnectionsOnAllLoops) {
  PortOptions options = Options(3);
  absl::Mutex mutex;
  std::map<Loop*, int> by_loop;
  hooks_.on_open = [&](Transport* transport) {
    EXPECT_TRUE(transport->loop().IsCurrent());
    EXPECT_EQ(transport->peer().address, "127.0.0.1");
    EXPECT_TRUE(transport->peer().is_loopback);
    EXPECT_FALSE(transport->peer().is_tls);
    absl::MutexLock lock(&mutex);
    ++by_loop[&transport->loop()];
  };
  Open(std::move(options));
  std::vector<std::unique_ptr<NetClient>> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<NetClient>(port_->port()));
    ASSERT_TRUE(clients.back()->Send(absl::StrCat("client ", i, ".")));
  }
  for (int i = 0; i < 30; ++i) {
    const std::string expected = absl::StrCat("client ", i, ".");
    EXPECT_EQ(clients[i]->Read(expected.size()), expected);
  }
  EXPECT_EQ(port_->connections(), 30U);
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(by_loop.size(), 3U);
  for (const auto& [loop, connections] : by_loop) EXPECT_EQ(connections, 10);
}

TEST_F(PortTest, OutputIsWrittenInOrderAndTellsWhenItIs) {
  absl::Notification written;
  hooks_.on_bytes = [&](Transport* transport, std::string_view) {
    transport->output().Copy("head ");
    transport->output().Add(Owned(Pattern(kLarge)));
    transport->output().Copy(" end");
    transport->output().OnWritten([&, transport] {
      EXPECT_TRUE(transport->output().empty());
      written.Notify();
    });
    transport->CloseAfterOutput();
  };
  Open(Options());
  NetClient client(port_->port());
  ASSERT_TRUE(client.Send("go"));
  EXPECT_TRUE(client.ReadToEnd() == "head " + Pattern(kLarge) + " end");
  written.WaitForNotification();
}

// Without the linger, closing with unread bytes would reset the connection and destroy the answer.
TEST_F(PortTest, TheLastAnswerArrivesThoughTheClientStillSends) {
  hooks_.on_bytes = [](Transport* transport, std::string_view) {
    transport->output().Copy("too large");
    transport->CloseAfterOutput();
  };
  Open(Options(1));
  NetClient client(port_->port());
  ASSERT_TRUE(client.Send(Pattern(size_t{256} << 10)));
  EXPECT_EQ(client.ReadToEnd(), "too large");
}

TEST_F(PortTest, PausedReadingKeepsTheBytes) {
  hooks_.on_bytes = [](Transport* transport, std::string_view bytes) {
    transport->output().Copy(bytes);
    transport->Flush();
    transport->PauseReading(true);
    // After this round, in which the client's next bytes may have come.
    transport->loop().Post([transport] { transport->PauseReading(false); });
  };
  Open(Options(1));
  NetClient client(port_->port());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client.Send("piece "));
  EXPECT_EQ(client.Read(60), "piece piece piece piece piece piece piece piece piece piece ");
}

TEST_F(PortTest, TheClientsEndIsToldOnceWhileReadingIsPaused) {
  absl::Notification told;
  hooks_.on_bytes = [](Transport* transport, std::string_view) { transport->PauseReading(true); };
  // Notify() must not be called twice.
  hooks_.on_end_ahead = [&](Transport*) { told.Notify(); };
  Open(Options());
  NetClient client(port_->port());
  ASSERT_TRUE(client.Send("go"));
  client.EndSending();
  told.WaitForNotification();
  port_->Close();
}

TEST_F(PortTest, AbortLosesTheConnectionFromTheLoop) {
  absl::Notification lost;
  bool in_call = false;
  hooks_.on_bytes = [&](Transport* transport, std::string_view) {
    in_call = true;
    transport->Abort();
    transport->Abort();
    in_call = false;
  };
  hooks_.on_lost = [&](Transport*) {
    EXPECT_FALSE(in_call);
    lost.Notify();
  };
  Open(Options());
  NetClient client(port_->port());
  ASSERT_TRUE(client.Send("go"));
  lost.WaitForNotification();
  EXPECT_EQ(client.ReadToEnd(), "");
  port_->Close();
  EXPECT_EQ(hooks_.lost, 1);
  EXPECT_EQ(hooks_.destroyed, 1);
}

TEST_F(PortTest, AResetOfTheClientIsNoticedWhileReadingIsPaused) {
  absl::Notification paused, lost;
  hooks_.on_bytes = [&](Transport* transport, std::string_view) {
    transport->PauseReading(true);
    paused.Notify();
  };
  hooks_.on_lost = [&](Transport*) { lost.Notify(); };
  Open(Options());
  {
    NetClient client(port_->port());
    client.ResetWhenClosed();
    ASSERT_TRUE(client.Send("go"));
    paused.WaitForNotification();
  }
  lost.WaitForNotification();
}

TEST_F(PortTest, AnExceptionEndsItsConnectionOnly) {
  hooks_.on_bytes = [](Transport* transport, std::string_view bytes) {
    if (bytes == "bad") throw std::bad_alloc();
    transport->output().Copy(bytes);
    if (bytes == "mark") transport->output().OnWritten([] { throw std::bad_alloc(); });
    transport->Flush();
  };
  Open(Options(1));
  NetClient other(port_->port());
  NetClient bad(port_->port());
  ASSERT_TRUE(bad.Send("bad"));
  EXPECT_EQ(bad.ReadToEnd(), "");
  NetClient mark(port_->port());
  ASSERT_TRUE(mark.Send("mark"));
  EXPECT_EQ(mark.ReadToEnd(), "mark");
  ASSERT_TRUE(other.Send("good"));
  EXPECT_EQ(other.Read(4), "good");
}

TEST_F(PortTest, ASlowReaderIsEnded) {
  PortOptions options = Options();
  options.write_grace = absl::Milliseconds(20);
  options.min_bytes_per_second = int64_t{1} << 40;
  absl::Notification lost;
  hooks_.on_bytes = [](Transport* transport, std::string_view) {
    transport->output().Add(Owned(Pattern(kLarge)));
    transport->Flush();
  };
  hooks_.on_lost = [&](Transport*) { lost.Notify(); };
  Open(std::move(options));
  NetClient client(port_->port(), 4096);
  ASSERT_TRUE(client.Send("++"));
  lost.WaitForNotification();
  EXPECT_EQ(refusals_.count(Refusal::kStalledDownload), 1);
  EXPECT_EQ(refusals_.cut(), 2U) << "both of its requests";
  EXPECT_LT(client.ReadToEnd().size(), kLarge);
}

// Any rate is enough here, so that the test does not depend on the machine's speed.
TEST_F(PortTest, AReaderThatIsFastEnoughIsNotEnded) {
  PortOptions options = Options();
  options.write_grace = absl::Milliseconds(1);
  options.min_bytes_per_second = 0;
  hooks_.on_bytes = [](Transport* transport, std::string_view) {
    transport->output().Add(Owned(Pattern(kLarge)));
    transport->CloseAfterOutput();
  };
  Open(std::move(options));
  NetClient client(port_->port(), 4096);
  ASSERT_TRUE(client.Send("go"));
  EXPECT_EQ(client.ReadToEnd().size(), kLarge);
  EXPECT_EQ(refusals_.count(Refusal::kStalledDownload), 0);
  EXPECT_EQ(refusals_.cut(), 0U);
}

TEST_F(PortTest, CountsWhatIsOpen) {
  Open(Options());
  NetClient one(port_->port()), two(port_->port()), three(port_->port());
  ASSERT_TRUE(one.Send("++"));
  ASSERT_TRUE(two.Send("+"));
  ASSERT_TRUE(three.Send("."));
  EXPECT_EQ(one.Read(2) + two.Read(1) + three.Read(1), "+++.");
  EXPECT_EQ(port_->connections(), 3U);
  EXPECT_EQ(port_->open_requests(), 3U);
  ASSERT_TRUE(one.Send("-"));
  EXPECT_EQ(one.Read(1), "-");
  EXPECT_EQ(port_->open_requests(), 2U);
}

TEST_F(PortTest, DrainsConnectionsOfNowAndOfLater) {
  hooks_.on_drain = [](Transport* transport, absl::Duration grace) {
    transport->output().Copy(absl::StrCat("go elsewhere within ", absl::FormatDuration(grace)));
    transport->CloseAfterOutput();
  };
  Open(Options());
  NetClient now(port_->port());
  ASSERT_TRUE(now.Send("."));
  EXPECT_EQ(now.Read(1), ".");
  port_->Drain(absl::Seconds(3));
  EXPECT_EQ(now.ReadToEnd(), "go elsewhere within 3s");
  NetClient later(port_->port());
  EXPECT_EQ(later.ReadToEnd(), "go elsewhere within 3s");
}

TEST_F(PortTest, CloseEndsBusyConnectionsAndFreesThePort) {
  hooks_.on_bytes = [](Transport* transport, std::string_view) {
    transport->output().Copy("x");
    transport->output().Add(Owned(Pattern(kLarge)));
    transport->Flush();
  };
  Open(Options());
  const int number = port_->port();
  NetClient busy(number), idle(number);
  ASSERT_TRUE(busy.Send("+"));
  EXPECT_EQ(busy.Read(1), "x");
  port_->Close();
  EXPECT_EQ(hooks_.lost, hooks_.opened);
  EXPECT_EQ(hooks_.destroyed, hooks_.opened);
  EXPECT_EQ(port_->connections(), 0U);
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_FALSE(NetClient(number).connected());
  port_->Close();
  PortOptions again = Options();
  again.port = number;
  Open(std::move(again));
}

TEST_F(PortTest, CloseWhileClientsComeAndGo) {
  Open(Options(3));
  const int number = port_->port();
  std::atomic<bool> end = false;
  std::vector<std::thread> clients;
  absl::BlockingCounter served(4);
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int round = 0; !end; ++round) {
        const NetClient client(number);
        if (!client.connected()) continue;
        if (round % 2 == 0) client.ResetWhenClosed();
        if (client.Send("hello") && client.Read(5) == "hello" && round == 0) served.DecrementCount();
      }
    });
  }
  served.Wait();
  port_->Close();
  EXPECT_EQ(hooks_.destroyed, hooks_.opened);
  end = true;
  for (std::thread& client : clients) client.join();
}

// The client's descriptor is the last one that the process may have.
TEST_F(PortTest, AcceptsAgainAfterTheProcessRanOutOfDescriptors) {
  Open(Options(1));
  class RoundOver final : public Watcher {
   public:
    void OnEvents(uint32_t /*events*/) override {}
    void OnEndOfRound() override { done.Notify(); }
    absl::Notification done;
  };
  const auto await_round = [this] {
    RoundOver round_over;
    loops_[0]->Post([&] { loops_[0]->AtEndOfRound(&round_over); });
    round_over.done.WaitForNotification();
  };
  // UBSan needs descriptors when it meets a class for the first time.
  await_round();
  NetClient client;
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const int highest = dup(client.fd());
  close(highest);
  rlimit few = usual;
  few.rlim_cur = static_cast<rlim_t>(highest);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  client.Connect(port_->port());
  await_round();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  ASSERT_TRUE(client.connected());
  ASSERT_TRUE(client.Send("hello"));
  EXPECT_EQ(client.Read(5), "hello");
}

TEST_F(PortTest, APortInUseIsAnErrorThatNamesTheFlag) {
  Open(Options(1));
  PortOptions options = Options(1);
  options.port = port_->port();
  options.port_flag = "--metrics-port";
  const auto second = Port::Open(std::move(options));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(
      std::string(second.status().message()),
      absl::StrCat("port ", port_->port(),
                   " of --metrics-port is in use by another process; pass --metrics-port 0 for a free one"));
}

TEST_F(PortTest, WhatCannotBeListenedOnIsAnError) {
  PortOptions options = Options(1);
  options.port = 65536;
  EXPECT_THAT(std::string(Port::Open(options).status().message()),
              HasSubstr("--http-port is 65536, expected 1 to 65535"));
  options.port = 0;
  options.host = "192.0.2.1";
  EXPECT_THAT(std::string(Port::Open(options).status().message()),
              HasSubstr("'192.0.2.1' is no address of this machine"));
  options.host = "no address";
  EXPECT_EQ(Port::Open(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PortTest, ClientsOfAnIpv6SocketHaveTheirIpv4Addresses) {
  PortOptions options = Options(1);
  options.host = "::";
  hooks_.on_bytes = [](Transport* transport, std::string_view) {
    transport->output().Copy(transport->peer().address);
    transport->CloseAfterOutput();
  };
  auto port = Port::Open(std::move(options));
  if (!port.ok()) GTEST_SKIP() << "this machine has no IPv6: " << port.status();
  NetClient client((*port)->port());
  ASSERT_TRUE(client.Send("."));
  EXPECT_EQ(client.ReadToEnd(), "127.0.0.1");
}

}  // namespace
}  // namespace saccade::server

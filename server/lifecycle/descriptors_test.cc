#include "server/lifecycle/descriptors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace saccade::server {
namespace {

// A listener on a free port of this machine, and clients that connect to it.
class DescriptorsTest : public testing::Test {
 protected:
  DescriptorsTest() {
    getrlimit(RLIMIT_NOFILE, &limit_);
    PrepareForTooManyFiles();
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
  }
  ~DescriptorsTest() override {
    for (const int filler : fillers_) close(filler);
    for (const int client : clients_) close(client);
    close(listener_);
    setrlimit(RLIMIT_NOFILE, &limit_);
  }

  // Returns a connected client.
  int Connect() {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    clients_.push_back(client);
    return client;
  }

  // Opens files until there is no descriptor left.
  void UseUpDescriptors() {
    // With the usual limit this would take long.
    const rlimit small = {.rlim_cur = 256, .rlim_max = limit_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    for (int file = 0; (file = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) fillers_.push_back(file);
    ASSERT_EQ(errno, EMFILE);
  }

  // Whether the other side has closed the client's connection. Blocks until it has sent something otherwise.
  static bool IsClosed(int client) {
    char byte = 0;
    return read(client, &byte, 1) <= 0;
  }

  rlimit limit_{};
  int listener_ = -1;
  std::vector<int> clients_;
  std::vector<int> fillers_;
};

TEST_F(DescriptorsTest, TheSoftLimitIsRaisedToTheHardLimit) {
  const rlimit low = {.rlim_cur = 256, .rlim_max = limit_.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  PrepareForTooManyFiles();
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, limit_.rlim_max);
}

TEST_F(DescriptorsTest, ConnectionsAreAcceptedAsUsualWhileThereAreDescriptors) {
  Connect();
  const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(accepted, 0);
  clients_.push_back(accepted);
  EXPECT_EQ(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), -1);
  EXPECT_EQ(errno, EAGAIN) << "there is no other connection";
}

TEST_F(DescriptorsTest, WithoutDescriptorsConnectionsAreClosedAtOnce) {
  const int first = Connect();
  const int second = Connect();
  UseUpDescriptors();
  EXPECT_EQ(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), -1);
  EXPECT_EQ(errno, EAGAIN) << "gRPC continues to listen";
  EXPECT_TRUE(IsClosed(first));
  EXPECT_TRUE(IsClosed(second));
}

TEST_F(DescriptorsTest, ConnectionsAreAcceptedAgainOnceThereAreDescriptors) {
  Connect();
  UseUpDescriptors();
  EXPECT_EQ(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), -1);
  for (int i = 0; i < 2; ++i) {
    close(fillers_.back());
    fillers_.pop_back();
  }
  Connect();
  const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(accepted, 0);
  clients_.push_back(accepted);
}

// The caller of a blocking listener waits for descriptors itself.
TEST_F(DescriptorsTest, ABlockingListenerGetsTheError) {
  Connect();
  ASSERT_EQ(fcntl(listener_, F_SETFL, 0), 0);
  UseUpDescriptors();
  EXPECT_EQ(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), -1);
  EXPECT_EQ(errno, EMFILE);
}

}  // namespace
}  // namespace saccade::server

// Which connections are refused or closed when there are too many.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/net/connection_limits.h"
#include "server/net/testing/net_client.h"
#include "server/net/testing/port_fixture.h"

namespace saccade::server {
namespace {

class PortLimitsTest : public PortTest {
 protected:
  // A port whose connections are bounded by `max`.
  void OpenWithPlaces(size_t max, int loops, absl::Duration first_request_time = absl::Seconds(1)) {
    limits_ = std::make_unique<ConnectionLimits>(
        ConnectionLimits::Options{.max_connections = max, .max_per_address = 100, .kept_for_probes = 0});
    PortOptions options = Options(loops);
    options.limits = limits_.get();
    options.first_request_time = first_request_time;
    Open(std::move(options));
  }
  // A second port on the same loops, with the same limits.
  void OpenOther() {
    PortOptions options = Options(0);
    options.limits = limits_.get();
    Open(std::move(options));
  }
  ~PortLimitsTest() override { port_.reset(); }

  // A connection that has sent `bytes` and received their echo.
  std::unique_ptr<NetClient> Client(std::string_view bytes) {
    auto client = std::make_unique<NetClient>(port_->port());
    Echo(*client, bytes);
    return client;
  }
  static void Echo(const NetClient& client, std::string_view bytes) {
    EXPECT_TRUE(client.Send(bytes));
    EXPECT_EQ(client.Read(bytes.size()), bytes);
  }

  std::unique_ptr<ConnectionLimits> limits_;
};

TEST_F(PortLimitsTest, BusyConnectionsAreNotClosedForANewOne) {
  OpenWithPlaces(2, 2);
  const auto one = Client("+"), two = Client("+");
  const NetClient refused(port_->port());
  EXPECT_EQ(refused.ReadToEnd(), "");
  EXPECT_EQ(refusals_.count(Refusal::kConnections), 1);
  Echo(*one, "still there");
  Echo(*two, "still there");
  EXPECT_EQ(limits_->open(), 2U);
}

TEST_F(PortLimitsTest, ACrowdGivesAPlaceToAnotherAddress) {
  limits_ = std::make_unique<ConnectionLimits>(
      ConnectionLimits::Options{.max_connections = 4, .max_per_address = 100, .kept_for_probes = 0});
  PortOptions options = Options(2);
  options.limits = limits_.get();
  options.replaces_busy = true;
  Open(std::move(options));
  std::vector<std::unique_ptr<NetClient>> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(Client("+"));
  const NetClient more(port_->port());
  EXPECT_EQ(more.ReadToEnd(), "") << "it is of the crowd";
  EXPECT_EQ(refusals_.count(Refusal::kConnections), 1);
  const auto from_other = [this] {
    auto client = std::make_unique<NetClient>();
    EXPECT_TRUE(client->Bind(htonl(INADDR_LOOPBACK + 1)));
    client->Connect(port_->port());
    return client;
  };
  const auto one = from_other();
  Echo(*one, "+");
  const auto two = from_other();
  Echo(*two, "+");
  const auto third = from_other();
  EXPECT_EQ(third->ReadToEnd(), "") << "now both have as many";
  EXPECT_EQ(limits_->open(), 4U);
}

TEST_F(PortLimitsTest, TheOneThatHasBeenIdleLongestMakesRoom) {
  OpenWithPlaces(3, 1);
  const auto first = Client("+"), second = Client("+"), third = Client("+");
  Echo(*second, "-");
  Echo(*first, "-");
  Echo(*third, "-");
  const auto fourth = Client("+");
  EXPECT_EQ(second->ReadToEnd(), "");
  const auto fifth = Client("+");
  EXPECT_EQ(first->ReadToEnd(), "");
  Echo(*third, "still there");
  EXPECT_EQ(limits_->open(), 3U);
  EXPECT_EQ(refusals_.count(Refusal::kConnections), 0);
}

TEST_F(PortLimitsTest, AnIdleConnectionOfAnotherLoopMakesRoom) {
  OpenWithPlaces(2, 2);
  const auto busy = Client("+"), idle = Client(".");
  const auto last = Client("+");
  EXPECT_EQ(idle->ReadToEnd(), "");
  Echo(*busy, "still there");
}

// As the metrics port does when the port for inference is full.
TEST_F(PortLimitsTest, AnIdleConnectionOfAnotherPortMakesRoom) {
  OpenWithPlaces(2, 2);
  const auto first = std::move(port_);
  const NetClient idle(first->port());
  EXPECT_TRUE(idle.Send("."));
  EXPECT_EQ(idle.Read(1), ".");
  OpenOther();
  const auto busy = Client("+"), last = Client("+");
  EXPECT_EQ(idle.ReadToEnd(), "");
  const NetClient refused(first->port());
  EXPECT_EQ(refused.ReadToEnd(), "");
  EXPECT_EQ(refusals_.count(Refusal::kConnections), 1);
}

TEST_F(PortLimitsTest, ASilentConnectionMakesRoomIfNoOtherIsIdle) {
  OpenWithPlaces(2, 1);
  const NetClient silent(port_->port());
  const auto busy = Client("+");
  const auto last = Client("+");
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST_F(PortLimitsTest, ANewConnectionIsGivenAMomentForItsFirstRequest) {
  OpenWithPlaces(2, 1, absl::InfiniteDuration());
  const auto served = Client("+");
  const NetClient fresh(port_->port());
  Echo(*served, "-");
  const auto last = Client("+");
  EXPECT_EQ(served->ReadToEnd(), "");
  Echo(fresh, "still there");
}

TEST_F(PortLimitsTest, AfterThatMomentItIsTheFirstToMakeRoom) {
  OpenWithPlaces(2, 1, absl::ZeroDuration());
  const auto served = Client("+");
  const NetClient fresh(port_->port());
  Echo(*served, "-");
  const auto last = Client("+");
  EXPECT_EQ(fresh.ReadToEnd(), "");
  Echo(*served, "still there");
}

TEST_F(PortLimitsTest, PlacesComeBack) {
  OpenWithPlaces(4, 2);
  for (int i = 0; i < 50; ++i) {
    const auto one = Client("+"), two = Client("+");
    one->EndSending();
    two->EndSending();
    EXPECT_EQ(one->ReadToEnd() + two->ReadToEnd(), "");
  }
  EXPECT_EQ(refusals_.count(Refusal::kConnections), 0);
  port_->Close();
  EXPECT_EQ(limits_->open(), 0U);
}

TEST_F(PortLimitsTest, AFloodLeavesTheLimitsExact) {
  OpenWithPlaces(5, 3);
  std::vector<std::unique_ptr<NetClient>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<NetClient>(port_->port()));
  // The flood may still be on its way, and close this client, too.
  do {
    clients.push_back(std::make_unique<NetClient>(port_->port()));
  } while (!clients.back()->Send("+") || clients.back()->Read(1) != "+");
  EXPECT_EQ(limits_->open(), 5U);
  port_->Close();
  EXPECT_EQ(limits_->open(), 0U);
  EXPECT_EQ(hooks_.destroyed, hooks_.opened);
}

}  // namespace
}  // namespace saccade::server

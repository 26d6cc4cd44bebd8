#include "server/net/connection_limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "server/net/address.h"

namespace saccade::server {
namespace {

sockaddr_storage Ipv4(const char* text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in&>(storage);
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  return storage;
}

sockaddr_storage Ipv6(const char* text) {
  sockaddr_storage storage{};
  auto& address = reinterpret_cast<sockaddr_in6&>(storage);
  address.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return storage;
}

TEST(AddressTest, PeersAreNamedByNumbers) {
  const Peer peer = PeerOf(Ipv4("192.0.2.7"), true);
  EXPECT_EQ(peer.address, "192.0.2.7");
  EXPECT_FALSE(peer.is_loopback);
  EXPECT_TRUE(peer.is_tls);
  EXPECT_EQ(PeerOf(Ipv6("2001:db8::1"), false).address, "2001:db8::1");
  EXPECT_EQ(PeerOf(sockaddr_storage{}, false).address, "");
}

TEST(AddressTest, Ipv4OverIpv6IsWrittenAsIpv4) {
  const Peer peer = PeerOf(Ipv6("::ffff:192.0.2.7"), false);
  EXPECT_EQ(peer.address, "192.0.2.7");
  EXPECT_FALSE(peer.is_loopback);
  EXPECT_TRUE(PeerOf(Ipv6("::ffff:127.0.0.1"), false).is_loopback);
}

TEST(AddressTest, LoopbackIsKnown) {
  EXPECT_TRUE(PeerOf(Ipv4("127.0.0.1"), false).is_loopback);
  EXPECT_TRUE(PeerOf(Ipv4("127.9.9.9"), false).is_loopback);
  EXPECT_TRUE(PeerOf(Ipv6("::1"), false).is_loopback);
  EXPECT_FALSE(PeerOf(Ipv4("128.0.0.1"), false).is_loopback);
  EXPECT_FALSE(PeerOf(Ipv6("::2"), false).is_loopback);
}

TEST(ConnectionLimitsTest, AnIpv6ClientIsKnownByItsNetwork) {
  EXPECT_EQ(LimitKeyOf("2001:db8:1:2:3:4:5:6"), LimitKeyOf("2001:db8:1:2:ffff::1"));
  EXPECT_NE(LimitKeyOf("2001:db8:1:2::1"), LimitKeyOf("2001:db8:1:3::1"));
  EXPECT_EQ(LimitKeyOf("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(LimitKeyOf(""), "");
}

TEST(ConnectionLimitsTest, BoundsEachAddress) {
  ConnectionLimits limits({.max_connections = 100, .max_per_address = 2, .kept_for_probes = 0});
  EXPECT_EQ(limits.Add("2001:db8::1", false), std::nullopt);
  EXPECT_EQ(limits.Add("2001:db8::2", false), std::nullopt);
  EXPECT_EQ(limits.Add("2001:db8::3", false), Refusal::kConnectionsOfAddress);
  EXPECT_EQ(limits.Add("2001:db8:0:1::1", false), std::nullopt);
  limits.Remove("2001:db8::9");
  EXPECT_EQ(limits.Add("2001:db8::3", false), std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limits.Add("127.0.0.1", true), std::nullopt);
  EXPECT_EQ(limits.open(), 8U);
}

TEST(ConnectionLimitsTest, KeepsPlacesForLocalProbes) {
  ConnectionLimits limits({.max_connections = 4, .max_per_address = 100, .kept_for_probes = 2});
  EXPECT_EQ(limits.Add("192.0.2.1", false), std::nullopt);
  EXPECT_EQ(limits.Add("192.0.2.1", false), std::nullopt);
  EXPECT_EQ(limits.Add("192.0.2.1", false), Refusal::kConnections);
  EXPECT_EQ(limits.Add("127.0.0.1", true), std::nullopt);
  EXPECT_EQ(limits.Add("::1", true), std::nullopt);
  EXPECT_EQ(limits.Add("127.0.0.1", true), Refusal::kConnections);
  limits.Remove("::1");
  EXPECT_EQ(limits.Add("192.0.2.1", false), Refusal::kConnections);
  EXPECT_EQ(limits.open(), 3U);
}

TEST(ConnectionLimitsTest, APlaceMayChangeItsOwner) {
  ConnectionLimits limits({.max_connections = 2, .max_per_address = 1, .kept_for_probes = 1});
  EXPECT_EQ(limits.Add("127.0.0.1", true), std::nullopt);
  EXPECT_EQ(limits.Add("127.0.0.1", true), std::nullopt);
  EXPECT_EQ(limits.Replace("127.0.0.1", "192.0.2.1", false), std::nullopt);
  EXPECT_EQ(limits.open(), 2U);
  EXPECT_EQ(limits.Replace("127.0.0.1", "192.0.2.1", false), Refusal::kConnectionsOfAddress);
  limits.Remove("192.0.2.1");
  limits.Remove("127.0.0.1");
  EXPECT_EQ(limits.open(), 0U);
}

TEST(ConnectionLimitsTest, MorePlacesKeptThanThereAreLeavesNoneForOthers) {
  ConnectionLimits limits({.max_connections = 2, .max_per_address = 9, .kept_for_probes = 16});
  EXPECT_EQ(limits.Add("192.0.2.1", false), Refusal::kConnections);
  EXPECT_EQ(limits.Add("127.0.0.1", true), std::nullopt);
}

TEST(ConnectionLimitsTest, HandshakesOfAnAddressHaveARate) {
  ConnectionLimits limits({.max_connections = 100, .max_per_address = 3, .max_handshakes_per_second = 2});
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limits.BeginHandshake("2001:db8::1", false, now), std::nullopt);
  EXPECT_EQ(limits.BeginHandshake("2001:db8::2", false, now), Refusal::kHandshakes);
  EXPECT_EQ(limits.BeginHandshake("192.0.2.1", false, now), std::nullopt);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(limits.BeginHandshake("127.0.0.1", true, now), std::nullopt);
  now += absl::Milliseconds(500);
  EXPECT_EQ(limits.BeginHandshake("2001:db8::2", false, now), std::nullopt);
  EXPECT_EQ(limits.BeginHandshake("2001:db8::2", false, now), Refusal::kHandshakes);
}

TEST(RefusalTest, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (size_t i = 0; i < kRefusals; ++i) names.insert(std::string(NameOf(static_cast<Refusal>(i))));
  EXPECT_EQ(names.size(), kRefusals);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(NameOf(Refusal::kConnectionsOfAddress), "connections_of_address");
}

}  // namespace
}  // namespace saccade::server

// Connections over TLS.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/clock.h"
#include "server/net/connection_limits.h"
#include "server/net/testing/net_client.h"
#include "server/net/testing/port_fixture.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Context = std::shared_ptr<SSL_CTX>;

// Takes "h2" of whatever the client offers.
int SelectH2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned in_size,
             void*) {
  static constexpr unsigned char kH2[] = {2, 'h', '2'};
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, size, kH2, sizeof(kH2), in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

// With a certificate that it has signed itself.
Context ServerContext() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  Context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key), 1);
  SSL_CTX_set_alpn_select_cb(context.get(), &SelectH2, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return context;
}

// What a client sends first.
std::string ClientHello() {
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  BIO* const output = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), output);
  EXPECT_EQ(SSL_connect(ssl.get()), -1) << "it waits for the answer";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(output, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

// The IPv4 address from which this machine reaches others. Nothing is sent.
std::optional<in_addr_t> OwnAddress() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  // An address of documentation.
  address.sin_addr.s_addr = inet_addr("192.0.2.1");
  socklen_t size = sizeof(address);
  const bool found = connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!found || address.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) return std::nullopt;
  return address.sin_addr.s_addr;
}

class TlsClient {
 public:
  explicit TlsClient(int port, bool offers_h2 = false, int max_version = TLS1_3_VERSION)
      : socket_(port),
        context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
        ssl_((SSL_CTX_set_max_proto_version(context_.get(), max_version), SSL_new(context_.get())),
             &SSL_free) {
    constexpr unsigned char kH2[] = {2, 'h', '2'};
    if (offers_h2) SSL_set_alpn_protos(ssl_.get(), kH2, sizeof(kH2));
    SSL_set_fd(ssl_.get(), socket_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }

  bool connected() const { return connected_; }
  SSL* ssl() { return ssl_.get(); }

  bool Send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }

  std::string Read(size_t size) {
    std::string all;
    std::vector<char> buffer(size_t{64} << 10);
    while (all.size() < size) {
      const int got =
          SSL_read(ssl_.get(), buffer.data(), static_cast<int>(std::min(buffer.size(), size - all.size())));
      if (got <= 0) {
        ended_orderly_ = SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN;
        break;
      }
      all.append(buffer.data(), static_cast<size_t>(got));
    }
    return all;
  }

  // Whether the server said that it has sent everything.
  bool ended_orderly() const { return ended_orderly_; }

 private:
  NetClient socket_;
  Context context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool connected_ = false;
  bool ended_orderly_ = false;
};

class PortTlsTest : public PortTest {
 protected:
  PortOptions TlsOptions() {
    PortOptions options = Options();
    options.tls = [context = ServerContext()] { return context; };
    return options;
  }
};

TEST_F(PortTlsTest, Echoes) {
  hooks_.on_open = [](Transport* transport) {
    EXPECT_TRUE(transport->peer().is_tls);
    EXPECT_EQ(transport->alpn(), "");
  };
  Open(TlsOptions());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(port_->port(), false, version);
    ASSERT_TRUE(client.connected());
    ASSERT_TRUE(client.Send("hello"));
    EXPECT_EQ(client.Read(5), "hello");
  }
}

TEST_F(PortTlsTest, CarriesLargeMessagesInAndOut) {
  std::string expected;
  for (int i = 0; expected.size() < (size_t{8} << 20); ++i) expected += std::to_string(i);
  std::string received;
  hooks_.on_bytes = [&](Transport* transport, std::string_view bytes) {
    received.append(bytes);
    if (received.size() < expected.size()) return;
    auto owner = std::make_shared<std::string>(std::move(received));
    const std::string_view whole = *owner;
    // Small pieces, which share records, between large ones.
    for (size_t at = 0; at < whole.size(); at += 100'000) {
      const std::string_view part = whole.substr(at, 100'000);
      transport->output().Copy(part.substr(0, 10));
      transport->output().Add(BytePieces(part.substr(std::min<size_t>(10, part.size())), owner));
    }
    transport->CloseAfterOutput();
  };
  Open(TlsOptions());
  TlsClient client(port_->port());
  ASSERT_TRUE(client.Send(expected));
  EXPECT_TRUE(client.Read(expected.size() + 1) == expected);
  EXPECT_TRUE(client.ended_orderly());
}

TEST_F(PortTlsTest, TellsTheProtocolThatWasAgreedOn) {
  absl::Notification opened;
  hooks_.on_open = [&](Transport* transport) {
    EXPECT_EQ(transport->alpn(), "h2");
    opened.Notify();
  };
  Open(TlsOptions());
  TlsClient client(port_->port(), true);
  ASSERT_TRUE(client.connected());
  opened.WaitForNotification();
}

TEST_F(PortTlsTest, AnHttpClientIsToldThatThisIsATlsPort) {
  Open(TlsOptions());
  const NetClient client(port_->port());
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
  const std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(answer, HasSubstr("this port speaks TLS; ask https:// of it"));
  EXPECT_EQ(hooks_.opened, 0);
}

TEST_F(PortTlsTest, ASlowHandshakeIsEnded) {
  PortOptions options = TlsOptions();
  options.handshake_timeout = absl::Milliseconds(20);
  Open(std::move(options));
  const NetClient silent(port_->port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(refusals_.count(Refusal::kHandshakeTimeout), 1);
}

// Established connections are served between the handshakes of a flood.
TEST_F(PortTlsTest, HandshakesHaveATimeInEachRound) {
  struct Rounds {
    absl::Mutex mutex;
    EventLoop* loop = nullptr;
    std::vector<absl::Time> of_handshakes;
  } rounds;
  const auto on_hello = [](SSL*, int*, void* argument) {
    auto& seen = *static_cast<Rounds*>(argument);
    // As an expensive key would.
    const absl::Time end = Clock::Real()->Now() + absl::Milliseconds(1);
    while (Clock::Real()->Now() < end) {
    }
    absl::MutexLock lock(&seen.mutex);
    seen.of_handshakes.push_back(seen.loop->Now());
    return SSL_CLIENT_HELLO_SUCCESS;
  };
  constexpr size_t kClients = 8;
  const Context context = ServerContext();
  SSL_CTX_set_client_hello_cb(context.get(), on_hello, &rounds);
  PortOptions options = Options(/*loops=*/1);
  options.tls = [context] { return context; };
  rounds.loop = loops_.front().get();
  Open(std::move(options));
  std::vector<std::unique_ptr<NetClient>> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back(std::make_unique<NetClient>(port_->port()));
  // All hellos come while the loop is busy.
  absl::Notification go;
  loops_.front()->Post([&go] { go.WaitForNotification(); });
  const std::string hello = ClientHello();
  for (const auto& client : clients) EXPECT_TRUE(client->Send(hello));
  go.Notify();
  {
    absl::MutexLock lock(&rounds.mutex);
    const auto all = [&rounds]() { return rounds.of_handshakes.size() == kClients; };
    ASSERT_TRUE(rounds.mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(20)));
    const std::set<absl::Time> distinct(rounds.of_handshakes.begin(), rounds.of_handshakes.end());
    EXPECT_EQ(distinct.size(), kClients);
  }
  port_->Close();
}

// A port that is asked from an address of this machine other than loopback, if it has one.
TEST_F(PortTlsTest, HandshakesOfAnAddressHaveARate) {
  const auto address = OwnAddress();
  if (!address) GTEST_SKIP() << "this machine has no address but loopback";
  ConnectionLimits limits({.max_per_address = 3, .max_handshakes_per_second = 1});
  PortOptions options = TlsOptions();
  options.host = "0.0.0.0";
  options.limits = &limits;
  Open(std::move(options));
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    NetClient client;
    client.Connect(port_->port(), *address);
    ASSERT_TRUE(client.connected());
    // Not TLS, so that the connection ends in any case.
    client.Send("GET / HTTP/1.1\r\n\r\n");
    if (client.ReadToEnd().empty()) ++refused;
  }
  // A few more if this takes seconds.
  EXPECT_GE(refused, 10);
  EXPECT_GE(refusals_.count(Refusal::kHandshakes), 10);
  port_.reset();
}

TEST_F(PortTlsTest, NonsenseEndsTheConnectionOnly) {
  Open(TlsOptions());
  {
    const NetClient client(port_->port());
    ASSERT_TRUE(client.Send(std::string(1000, '\x16')));
    client.ReadToEnd();
  }
  TlsClient client(port_->port());
  ASSERT_TRUE(client.Send("hello"));
  EXPECT_EQ(client.Read(5), "hello");
}

TEST_F(PortTlsTest, ConnectionsInTheHandshakeAreClosedWithThePort) {
  Open(TlsOptions());
  const NetClient silent(port_->port());
  TlsClient client(port_->port());
  ASSERT_TRUE(client.Send("."));
  EXPECT_EQ(client.Read(1), ".");
  port_->Close();
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(hooks_.opened, 1);
  EXPECT_EQ(hooks_.destroyed, 1);
}

// Renegotiation lets a client make the server compute much for little.
TEST_F(PortTlsTest, RenegotiationIsRefused) {
  Open(TlsOptions());
  TlsClient client(port_->port(), false, TLS1_2_VERSION);
  ASSERT_TRUE(client.connected());
  ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
  ERR_clear_error();
}

}  // namespace
}  // namespace saccade::server

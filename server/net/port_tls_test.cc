// Connections over TLS.
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

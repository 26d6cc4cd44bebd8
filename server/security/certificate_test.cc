#include "server/security/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/security/certificates.h"

namespace saccade::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Pair {
  std::string certificate;
  std::string key;
};

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

// Creates a self-signed certificate that is valid from now on, and its key.
Pair MakePair(const char* name, absl::Duration life = absl::Hours(1), const char* passphrase = nullptr) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), absl::ToInt64Seconds(life));
  X509_set_pubkey(certificate, key);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1,
                             -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key, EVP_sha256());
  BIO* const written = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(written, certificate);
  BIO* const written_key = BIO_new(BIO_s_mem());
  const EVP_CIPHER* const cipher = passphrase == nullptr ? nullptr : EVP_aes_128_cbc();
  PEM_write_bio_PKCS8PrivateKey(written_key, key, cipher, passphrase, passphrase == nullptr ? 0 : 4, nullptr,
                                nullptr);
  Pair made{TextOf(written), TextOf(written_key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    std::string name = testing::TempDir() + "certificatesXXXXXX";
    folder_ = mkdtemp(name.data());
    files_ = {Path("cert.pem"), Path("key.pem"), ""};
    Write(pair_);
  }
  ~CertificateTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    chmod(Path(name).c_str(), 0600);
  }
  void Write(const Pair& pair) const {
    Write("cert.pem", pair.certificate);
    Write("key.pem", pair.key);
  }
  std::string Said(absl::Time now = absl::Now()) const {
    return std::string(ReadCertificate(files_, now).status().message());
  }

  const Pair pair_ = MakePair("here");
  std::filesystem::path folder_;
  CertificateFiles files_;
};

TEST_F(CertificateTest, APairIsRead) {
  const auto read = ReadCertificate(files_, absl::Now());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->certificate, pair_.certificate);
  EXPECT_EQ((*read)->key, pair_.key);
  EXPECT_NE((*read)->context, nullptr);
  EXPECT_GT((*read)->expires, absl::Now() + absl::Minutes(59));
}

// A handshake in memory with a client that offers these protocols. Returns what was agreed on: a protocol, ""
// for none, or nullopt if the handshake failed.
std::optional<std::string> Agreed(SSL_CTX* server_context, const std::vector<std::string>& offered,
                                  int client_version = TLS1_3_VERSION,
                                  const std::string& client_groups = "X25519:P-256") {
  std::string wire;
  for (const std::string& protocol : offered)
    wire += std::string(1, static_cast<char>(protocol.size())) + protocol;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> client_context(SSL_CTX_new(TLS_client_method()),
                                                                    &SSL_CTX_free);
  SSL_CTX_set_security_level(client_context.get(), 0);
  SSL_CTX_set_max_proto_version(client_context.get(), client_version);
  EXPECT_EQ(SSL_CTX_set1_groups_list(client_context.get(), client_groups.c_str()), 1) << client_groups;
  const std::unique_ptr<SSL, void (*)(SSL*)> client(SSL_new(client_context.get()), &SSL_free);
  const std::unique_ptr<SSL, void (*)(SSL*)> server(SSL_new(server_context), &SSL_free);
  BIO* client_end = nullptr;
  BIO* server_end = nullptr;
  BIO_new_bio_pair(&client_end, 0, &server_end, 0);
  SSL_set_bio(client.get(), client_end, client_end);
  SSL_set_bio(server.get(), server_end, server_end);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  if (!wire.empty()) {
    SSL_set_alpn_protos(client.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                        static_cast<unsigned int>(wire.size()));
  }
  for (int round = 0; round < 20; ++round) {
    const bool connected = SSL_do_handshake(client.get()) == 1;
    const bool accepted = SSL_do_handshake(server.get()) == 1;
    if (!connected || !accepted) continue;
    const unsigned char* data = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(client.get(), &data, &size);
    return std::string(reinterpret_cast<const char*>(data), size);
  }
  return std::nullopt;
}

TEST_F(CertificateTest, AgreesOnAVersionOfHttp) {
  const auto read = ReadCertificate(files_, absl::Now());
  ASSERT_TRUE(read.ok()) << read.status();
  SSL_CTX* const context = (*read)->context.get();
  EXPECT_EQ(Agreed(context, {"h2"}), "h2");
  EXPECT_EQ(Agreed(context, {"http/1.1", "h2"}), "h2") << "the server's order counts";
  EXPECT_EQ(Agreed(context, {"http/1.1"}), "http/1.1");
  EXPECT_EQ(Agreed(context, {"grpc-exp", "h2"}), "h2");
  EXPECT_EQ(Agreed(context, {}), "") << "a client without ALPN is served too";
  EXPECT_EQ(Agreed(context, {"spdy/3"}), "") << "a client with other protocols is not turned away";
}

TEST_F(CertificateTest, OldVersionsOfTlsAreRefused) {
  const auto read = ReadCertificate(files_, absl::Now());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Agreed((*read)->context.get(), {"h2"}, TLS1_2_VERSION), "h2");
  EXPECT_EQ(Agreed((*read)->context.get(), {"h2"}, TLS1_1_VERSION), std::nullopt);
}

TEST_F(CertificateTest, GroupsThatTakeTheServerLongAreRefused) {
  const auto read = ReadCertificate(files_, absl::Now());
  ASSERT_TRUE(read.ok()) << read.status();
  SSL_CTX* const context = (*read)->context.get();
  for (const char* group : {"X25519", "P-256", "P-384", "P-521", "ffdhe8192:P-256"})
    EXPECT_EQ(Agreed(context, {"h2"}, TLS1_3_VERSION, group), "h2") << group;
  for (const char* group : {"ffdhe2048", "ffdhe8192"})
    EXPECT_EQ(Agreed(context, {"h2"}, TLS1_3_VERSION, group), std::nullopt) << group;
}

TEST_F(CertificateTest, TellsFlagAndFileOfWhatIsMissing) {
  std::filesystem::remove(Path("key.pem"));
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-key " + Path("key.pem")), HasSubstr("No such file")));
}

TEST_F(CertificateTest, TellsWhatIsNoCertificate) {
  Write("cert.pem", pair_.key);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-cert " + Path("cert.pem")), HasSubstr("holds no certificate")));
  Write("cert.pem", pair_.certificate.substr(0, pair_.certificate.size() / 2));
  EXPECT_THAT(Said(), HasSubstr("--tls-cert " + Path("cert.pem")));
  Write("cert.pem", pair_.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  EXPECT_THAT(Said(), HasSubstr("cannot be read"));
}

TEST_F(CertificateTest, TellsWhatIsNoKey) {
  Write("key.pem", pair_.certificate);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-key " + Path("key.pem")), HasSubstr("holds no private key")));
  Write("key.pem", MakePair("here", absl::Hours(1), "word").key);
  EXPECT_THAT(Said(), HasSubstr("passphrase"));
}

// OpenSSL decrypts any PEM block with this header. By default it asks for the passphrase on the terminal,
// which would block the daemon, also when it reloads the file while serving.
TEST_F(CertificateTest, AnEncryptedCertificateIsRefusedWithoutAPrompt) {
  constexpr char kBegin[] = "-----BEGIN CERTIFICATE-----\n";
  std::string encrypted = pair_.certificate;
  ASSERT_EQ(encrypted.rfind(kBegin, 0), 0U);
  encrypted.insert(sizeof(kBegin) - 1,
                   "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n");
  Write("cert.pem", encrypted);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-cert " + Path("cert.pem")), HasSubstr("without a passphrase")));
  Write("cert.pem", pair_.certificate);
  files_.client_ca = Path("ca.pem");
  Write("ca.pem", encrypted);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-client-ca"), HasSubstr("without a passphrase")));
}

TEST_F(CertificateTest, TellsAKeyOfAnother) {
  Write("key.pem", MakePair("elsewhere").key);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--tls-key " + Path("key.pem")), HasSubstr("is not the key of"),
                            HasSubstr("--tls-cert " + Path("cert.pem"))));
}

TEST_F(CertificateTest, TellsWhatIsNotInForce) {
  EXPECT_THAT(Said(absl::Now() + absl::Hours(2)), HasSubstr("the certificate expired on"));
  EXPECT_THAT(Said(absl::Now() - absl::Hours(2)), HasSubstr("not valid before"));
}

TEST_F(CertificateTest, TellsWhatIsNoClientCa) {
  files_.client_ca = Path("ca.pem");
  Write("ca.pem", "nothing");
  EXPECT_THAT(Said(), HasSubstr("--tls-client-ca " + Path("ca.pem") + ": holds no certificate"));
  Write("ca.pem", pair_.certificate + MakePair("other").certificate);
  EXPECT_TRUE(ReadCertificate(files_, absl::Now()).ok());
}

TEST_F(CertificateTest, AChangedPairIsTakenOnceItFits) {
  const auto certificates = Certificates::Open(files_).value();
  // A change counts once two calls have seen it.
  const auto look = [&certificates] {
    certificates->ReloadIfChanged();
    certificates->ReloadIfChanged();
    return certificates->current();
  };
  const auto first = look();
  const Pair next = MakePair("next");
  Write("cert.pem", next.certificate);
  EXPECT_EQ(look(), first) << "its key has not come yet";
  Write("key.pem", next.key);
  EXPECT_EQ(look()->certificate, next.certificate);
  std::filesystem::remove(Path("cert.pem"));
  EXPECT_EQ(look()->certificate, next.certificate);
  Write(MakePair("gone", absl::Seconds(-1)));
  EXPECT_EQ(look()->certificate, next.certificate) << "what has expired already helps nobody";
}

// Whatever becomes of the files while the daemon runs, the certificate in use stays in use.
TEST_F(CertificateTest, BrokenFilesLeaveTheCertificateInUse) {
  files_.client_ca = Path("ca.pem");
  Write("ca.pem", pair_.certificate);
  const auto certificates = Certificates::Open(files_).value();
  const auto first = certificates->current();
  const std::vector<std::pair<const char*, std::string>> broken = {
      {"empty", ""},
      {"no PEM", std::string(100, '\0')},
      {"truncated", pair_.certificate.substr(0, 100)},
      {"too large", std::string((size_t{1} << 20) + 1, 'x')},
      {"no certificate inside", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
  };
  for (const char* file : {"cert.pem", "key.pem", "ca.pem"}) {
    for (const auto& [what, text] : broken) {
      Write(file, text);
      for (int i = 0; i < 3; ++i) certificates->ReloadIfChanged();
      EXPECT_EQ(certificates->current(), first) << file << ": " << what;
    }
    std::filesystem::remove(Path(file));
    for (int i = 0; i < 3; ++i) certificates->ReloadIfChanged();
    EXPECT_EQ(certificates->current(), first) << file << " is missing";
    std::filesystem::create_directory(Path(file));
    for (int i = 0; i < 3; ++i) certificates->ReloadIfChanged();
    EXPECT_EQ(certificates->current(), first) << file << " is a folder";
    std::filesystem::remove(Path(file));
    Write(pair_);
    Write("ca.pem", pair_.certificate);
  }
  const Pair next = MakePair("next");
  Write(next);
  for (int i = 0; i < 3; ++i) certificates->ReloadIfChanged();
  EXPECT_EQ(certificates->current()->certificate, next.certificate) << "a sound pair is used again";
}

}  // namespace
}  // namespace saccade::server

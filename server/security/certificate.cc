#include "server/security/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <ctime>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/security/secret_files.h"

namespace saccade::server {
namespace {

constexpr char kCertificateFlag[] = "--tls-cert";
constexpr char kKeyFlag[] = "--tls-key";
constexpr char kClientCaFlag[] = "--tls-client-ca";
constexpr size_t kMaxCertificates = 1000;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, Free>;
using Cert = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

// Returns the reason of OpenSSL's last error and clears its error queue.
std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown" : reason;
}

absl::Status FileError(absl::string_view flag, const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": ", what));
}

Bio Open(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// Passphrase callback of OpenSSL, which would otherwise prompt on the daemon's terminal and block. Enters
// none, and sets the bool at `needed`.
int NoPassphrase(char* /*to*/, int /*size*/, int /*writing*/, void* needed) {
  *static_cast<bool*>(needed) = true;
  return 0;
}

absl::StatusOr<std::vector<Cert>> ReadChain(absl::string_view flag, const std::string& path,
                                            const std::string& text) {
  const Bio bio = Open(text);
  std::vector<Cert> all;
  bool encrypted = false;
  ERR_clear_error();
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, &encrypted)) {
    all.emplace_back(one);
    if (all.size() > kMaxCertificates)
      return FileError(flag, path, absl::StrCat("holds more than ", kMaxCertificates, " certificates"));
  }
  if (encrypted) {
    ERR_clear_error();
    return FileError(flag, path, "holds an encrypted certificate; expected PEM without a passphrase");
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!ended) return FileError(flag, path, absl::StrCat("a certificate in it cannot be read: ", LastError()));
  ERR_clear_error();
  if (all.empty())
    return FileError(flag, path, "holds no certificate; expected PEM, with '-----BEGIN CERTIFICATE-----'");
  return all;
}

absl::StatusOr<Key> PrivateKey(const std::string& path, const std::string& text) {
  const Bio bio = Open(text);
  bool encrypted = false;
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, &encrypted));
  if (key != nullptr) return key;
  const std::string why = LastError();
  if (encrypted)
    return FileError(kKeyFlag, path,
                     "is protected by a passphrase; store the key without one, readable only by this user");
  return FileError(
      kKeyFlag, path,
      absl::StrCat("holds no private key (", why, "); expected PEM, with '-----BEGIN PRIVATE KEY-----'"));
}

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InvalidArgumentError("has an unreadable date");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::StatusOr<absl::Time> CheckInForce(const X509& certificate, const std::string& path, absl::Time now) {
  const auto begins = TimeOf(X509_get0_notBefore(&certificate));
  const auto expires = TimeOf(X509_get0_notAfter(&certificate));
  if (!begins.ok() || !expires.ok())
    return FileError(kCertificateFlag, path, "has unreadable validity dates");
  const auto text = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
  };
  if (now >= *expires) {
    return FileError(
        kCertificateFlag, path,
        absl::StrCat("the certificate expired on ", text(*expires), "; replace it with a valid one"));
  }
  if (now < *begins) {
    return FileError(
        kCertificateFlag, path,
        absl::StrCat("the certificate is not valid before ", text(*begins), "; check this machine's clock"));
  }
  return *expires;
}

// The protocols of ALPN, each after its length, the preferred one first.
constexpr unsigned char kProtocols[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// OpenSSL's ALPN callback. Clients that offer no protocol of ours are served all the same: the first bytes
// tell what they speak.
int SelectProtocol(SSL* /*connection*/, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void* /*argument*/) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kProtocols, sizeof(kProtocols), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// A context for TLS 1.2 and later, without features that HTTP does not need.
absl::StatusOr<std::shared_ptr<SSL_CTX>> NewContext() {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  // OpenSSL would also take groups of finite fields, among which the client chooses. One of 8,192 bits keeps
  // the thread that serves all connections busy for 7 ms (`openssl speed ffdh8192`).
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), "X25519:P-256:P-384:P-521") != 1) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot set up TLS: ", LastError()));
  }
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Sessions are resumed by tickets, so a cache of them would only use memory.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), &SelectProtocol, nullptr);
  constexpr unsigned char kName[] = "saccaded";
  SSL_CTX_set_session_id_context(context.get(), kName, sizeof(kName) - 1);
  return context;
}

absl::Status UsePair(SSL_CTX& context, const CertificateFiles& files, const std::vector<Cert>& chain,
                     EVP_PKEY& key) {
  if (X509_check_private_key(chain[0].get(), &key) != 1) {
    ERR_clear_error();
    return FileError(kKeyFlag, files.key,
                     absl::StrCat("is not the key of the first certificate in ", kCertificateFlag, " ",
                                  files.certificate));
  }
  if (SSL_CTX_use_certificate(&context, chain[0].get()) != 1) {
    return FileError(kCertificateFlag, files.certificate,
                     absl::StrCat("the certificate cannot be used: ", LastError()));
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(&context, chain[i].get()) != 1) {
      return FileError(kCertificateFlag, files.certificate,
                       absl::StrCat("certificate ", i + 1, " in it cannot be used: ", LastError()));
    }
  }
  if (SSL_CTX_use_PrivateKey(&context, &key) != 1) {
    return FileError(kKeyFlag, files.key, absl::StrCat("the key cannot be used: ", LastError()));
  }
  return absl::OkStatus();
}

absl::Status RequireClientCertificates(SSL_CTX& context, const std::string& path, const std::string& text) {
  const auto roots = ReadChain(kClientCaFlag, path, text);
  if (!roots.ok()) return roots.status();
  for (const Cert& root : *roots) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), root.get()) != 1 ||
        SSL_CTX_add_client_CA(&context, root.get()) != 1) {
      return FileError(kClientCaFlag, path,
                       absl::StrCat("a certificate in it cannot be used: ", LastError()));
    }
  }
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return absl::OkStatus();
}

absl::Status ReadAll(const CertificateFiles& files, Certificate& to) {
  const auto read = [](const char* flag, const std::string& path, std::string& text) {
    auto whole = flag == kKeyFlag ? ReadSecretFile(flag, path) : ReadPublicFile(flag, path);
    if (!whole.ok()) return whole.status();
    text = *std::move(whole);
    return absl::OkStatus();
  };
  if (absl::Status done = read(kCertificateFlag, files.certificate, to.certificate); !done.ok()) return done;
  if (absl::Status done = read(kKeyFlag, files.key, to.key); !done.ok()) return done;
  if (files.client_ca.empty()) return absl::OkStatus();
  return read(kClientCaFlag, files.client_ca, to.client_ca);
}

}  // namespace

Certificate::~Certificate() { Wipe(key); }

absl::StatusOr<std::shared_ptr<const Certificate>> ReadCertificate(const CertificateFiles& files,
                                                                   absl::Time now) {
  const auto made = std::make_shared<Certificate>();
  if (absl::Status read = ReadAll(files, *made); !read.ok()) return read;
  const auto chain = ReadChain(kCertificateFlag, files.certificate, made->certificate);
  if (!chain.ok()) return chain.status();
  const auto key = PrivateKey(files.key, made->key);
  if (!key.ok()) return key.status();
  const auto expires = CheckInForce(*chain->front(), files.certificate, now);
  if (!expires.ok()) return expires.status();
  made->expires = *expires;
  auto context = NewContext();
  if (!context.ok()) return context.status();
  made->context = *std::move(context);
  if (absl::Status used = UsePair(*made->context, files, *chain, **key); !used.ok()) return used;
  if (!files.client_ca.empty()) {
    if (absl::Status required = RequireClientCertificates(*made->context, files.client_ca, made->client_ca);
        !required.ok())
      return required;
  }
  return made;
}

}  // namespace saccade::server

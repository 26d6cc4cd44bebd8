#include "client/cpp/untrusted.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

constexpr int kHandshakeTimeoutSeconds = 3;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Connection = std::unique_ptr<BIO, decltype(&BIO_free_all)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

void Trust(SSL_CTX* context, const std::string& authorities) {
  if (authorities.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return;
  }
  const Bio pem(BIO_new_mem_buf(authorities.data(), static_cast<int>(authorities.size())), BIO_free);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  while (X509* one = PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, one);
    X509_free(one);
  }
}

std::string Name(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Time(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(bio.get(), time);
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Describe(long code, const X509* certificate) {
  switch (code) {
    case X509_V_OK:
      return "";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat("it has expired; it was valid until ", Time(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat("it is valid only from ", Time(X509_get0_notBefore(certificate)), " on");
    default:
      return absl::StrCat("it is signed by ", Name(X509_get_issuer_name(certificate)), ": ",
                          X509_verify_cert_error_string(code));
  }
}

}  // namespace

std::string WhyUntrusted(const std::string& host_port, const std::string& authorities) {
  const Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return "";
  Trust(context.get(), authorities);
  // Completes the handshake in any case, to read the certificate; no data is sent over this connection.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  std::string why;
  BIO* plain = BIO_new_connect(host_port.c_str());
  const Connection all(BIO_push(BIO_new_ssl(context.get(), 1), plain), BIO_free_all);
  if (BIO_do_connect_retry(plain, kHandshakeTimeoutSeconds, 100) == 1) {
    const timeval timeout{kHandshakeTimeoutSeconds, 0};
    int socket = -1;
    BIO_get_fd(plain, &socket);
    // The connection was made in non-blocking mode; the handshake blocks, bounded by the socket's timeouts.
    BIO_socket_nbio(socket, 0);
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    SSL* ssl = nullptr;
    BIO_get_ssl(all.get(), &ssl);
    if (BIO_do_handshake(all.get()) == 1) {
      const Certificate theirs(SSL_get1_peer_certificate(ssl), X509_free);
      if (theirs != nullptr) why = Describe(SSL_get_verify_result(ssl), theirs.get());
    }
  }
  ERR_clear_error();
  return why;
}

}  // namespace saccade::client

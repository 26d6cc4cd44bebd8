#include "client/cpp/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Open(absl::string_view pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// Returns the first certificate; null if there is none.
Certificate ReadCertificate(absl::string_view pem) {
  const Bio bio = Open(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  return certificate;
}

Key ReadKey(absl::string_view pem) {
  const Bio bio = Open(pem);
  // Without a callback OpenSSL would ask for a passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

std::string Text(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  ASN1_TIME_print(bio.get(), time);
  const char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

absl::Status CheckCertificates(absl::string_view pem, absl::string_view what) {
  if (ReadCertificate(pem) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " contains no readable certificate; expected PEM, -----BEGIN CERTIFICATE-----"));
}

absl::Status CheckIdentity(absl::string_view certificate, absl::string_view key) {
  if (certificate.empty() || key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the client's certificate and key must be given together; the ",
                     certificate.empty() ? "certificate" : "key", " is missing"));
  }
  if (absl::Status read = CheckCertificates(certificate, "the client's certificate"); !read.ok()) return read;
  const Certificate mine = ReadCertificate(certificate);
  const Key own = ReadKey(key);
  if (own == nullptr) {
    return absl::InvalidArgumentError(
        "the client's key file contains no readable private key; expected PEM, without a passphrase");
  }
  const bool fits = X509_check_private_key(mine.get(), own.get()) == 1;
  ERR_clear_error();
  if (!fits) return absl::InvalidArgumentError("the client's key does not match its certificate");
  if (X509_cmp_current_time(X509_get0_notAfter(mine.get())) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the client's certificate has expired; it was valid until ", Text(X509_get0_notAfter(mine.get()))));
  }
  return absl::OkStatus();
}

}  // namespace saccade::client

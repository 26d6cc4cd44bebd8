#include "client/cpp/testing/certificates.h"

#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

std::filesystem::path NewFolder() {
  std::string pattern = std::filesystem::path(::testing::TempDir()) / "certificates-XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  return pattern;
}

void OpenSsl(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string log = folder / "openssl.log";
  const int code = std::system(
      absl::StrCat("cd '", folder.string(), "' && openssl ", arguments, " >", log, " 2>&1").c_str());
  EXPECT_EQ(code, 0) << arguments << "\n" << Certificates::Read(log);
}

constexpr char kNewKey[] = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

void MakeAuthority(const std::filesystem::path& folder, const std::string& name) {
  OpenSsl(folder, absl::StrCat("req -x509", kNewKey, " -days 2 -subj '/CN=", name, " of tests' -keyout ",
                               name, ".key -out ", name, ".pem"));
}

void MakeCertificate(const std::filesystem::path& folder, const std::string& name, int days) {
  OpenSsl(folder, absl::StrCat("req", kNewKey,
                               " -subj /CN=saccade.test -addext subjectAltName=DNS:saccade.test -keyout ",
                               name, ".key -out ", name, ".csr"));
  OpenSsl(folder,
          absl::StrCat("x509 -req -in ", name,
                       ".csr -CA authority.pem -CAkey authority.key -CAcreateserial -copy_extensions copy",
                       " -days ", days, " -out ", name, ".pem"));
}

}  // namespace

Certificates::Certificates() : folder_(NewFolder()) {
  MakeAuthority(folder_, "authority");
  MakeAuthority(folder_, "stranger");
  MakeCertificate(folder_, "saccade", 2);
  MakeCertificate(folder_, "expired", -1);
}

Certificates::~Certificates() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::shared_ptr<grpc::ServerCredentials> Certificates::Server(const std::string& certificate,
                                                              const std::string& key, bool mutual) const {
  grpc::SslServerCredentialsOptions options(mutual
                                                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({Read(key), Read(certificate)});
  if (mutual) options.pem_root_certs = Read(authority());
  return grpc::SslServerCredentials(options);
}

std::string Certificates::Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace saccade::client

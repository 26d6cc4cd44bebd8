// Certificates for TLS tests, generated at run time so that no key is in the repository.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace grpc {
class ServerCredentials;
}

namespace saccade::client {

// The certificates are for the name "saccade.test", not for this machine's address.
class Certificates {
 public:
  Certificates();
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // Paths of PEM files.
  std::string authority() const { return folder_ / "authority.pem"; }
  // An authority that signed none of the certificates.
  std::string stranger() const { return folder_ / "stranger.pem"; }
  std::string certificate() const { return folder_ / "saccade.pem"; }
  std::string key() const { return folder_ / "saccade.key"; }
  std::string expired() const { return folder_ / "expired.pem"; }
  std::string expired_key() const { return folder_ / "expired.key"; }

  // Credentials of a server with the given certificate. If `mutual`, clients must present a certificate of
  // the same authority.
  std::shared_ptr<grpc::ServerCredentials> Server(const std::string& certificate, const std::string& key,
                                                  bool mutual = false) const;

  static std::string Read(const std::string& path);

 private:
  const std::filesystem::path folder_;
};

}  // namespace saccade::client

#include "server/security/certificates.h"

#include <vector>

#include "absl/time/clock.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

std::vector<std::string> PathsOf(const CertificateFiles& files) {
  std::vector<std::string> paths = {files.certificate, files.key};
  if (!files.client_ca.empty()) paths.push_back(files.client_ca);
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Open(const CertificateFiles& files) {
  std::unique_ptr<Certificates> certificates(new Certificates(files, SecretFiles(PathsOf(files))));
  if (absl::Status read = certificates->Read(); !read.ok()) return read;
  return certificates;
}

absl::Status Certificates::Read() {
  auto read = ReadCertificate(files_, absl::Now());
  if (!read.ok()) return read.status();
  Log(LogLevel::kInfo, "certificate loaded",
      {{"file", files_.certificate}, {"expires", absl::FormatTime((*read)->expires, absl::UTCTimeZone())}});
  absl::MutexLock lock(&mutex_);
  current_ = *std::move(read);
  return absl::OkStatus();
}

void Certificates::ReloadIfChanged() {
  watched_.ReadIfChanged([this] { return Read(); }, "certificate not reloaded; the current one stays in use");
}

std::shared_ptr<const Certificate> Certificates::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

}  // namespace saccade::server

#include "client/cli/output/outcome.h"

#include "absl/strings/str_join.h"
#include "client/cli/output/failure.h"

namespace saccade::client {

int Outcome::ExitCode() const {
  if (unreadable) return kExitFailure;
  if (!answer.ok()) return ExitCodeOf(answer.status());
  return write_status.ok() ? kExitOk : kExitFailure;
}

std::string NameOf(const std::vector<std::string>& files) {
  return absl::StrJoin(files, ", ", [](std::string* out, const std::string& file) {
    out->append(file == "-" ? "standard input" : file);
  });
}

}  // namespace saccade::client

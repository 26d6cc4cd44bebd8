#include "server/lifecycle/check_config.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/catalog/served_model.h"
#include "server/lifecycle/check_instruction_set.h"
#include "server/repository/repository.h"

namespace saccade::server {
namespace {

class Checker {
 public:
  Checker(const Flags& flags, std::ostream& out) : flags_(flags), out_(out) {}

  void Check(const std::string& repository) {
    const auto scan = ScanRepository(repository, {.complete = flags_.complete_configurations});
    if (!scan.ok()) return Report(repository, scan.status(), "");
    if (scan->models.empty() && scan->broken.empty())
      out_ << "WARNING " << repository
           << ": holds no models; expected a folder for each, with config.pbtxt and the weights in its "
              "folder 1"
           << std::endl;
    for (const ModelEntry& model : scan->models) Check(repository, model);
    for (const BrokenModel& broken : scan->broken) {
      const absl::Status unique = CheckUnique(broken.name, repository);
      Report(broken.name, unique.ok() ? broken.status : unique, "");
    }
  }

  // Returns false if no model can be loaded in this environment.
  bool CheckEnvironment() {
    const absl::Status known = CheckInstructionSet();
    if (!known.ok()) Report("the environment", known, "");
    return known.ok();
  }

  absl::Status Outcome() const {
    out_ << checked_ << " checked, " << wrong_ << " with errors" << std::endl;
    if (wrong_ == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(wrong_, " of ", checked_, " checks failed"));
  }

 private:
  void Check(const std::string& repository, const ModelEntry& model) {
    const ModelSettings& settings = model.settings;
    for (const std::string& warning : settings.warnings)
      out_ << "WARNING " << settings.name << ": " << warning << std::endl;
    if (absl::Status unique = CheckUnique(settings.name, repository); !unique.ok())
      return Report(settings.name, unique, "");
    for (const ModelVersion& version : model.versions) {
      const std::string what = absl::StrCat(settings.name, " version ", version.version);
      std::vector<std::string> warnings;
      const absl::Status status = ServedModel::Check(settings, version, flags_.permissions, &warnings);
      for (const std::string& warning : warnings) Warn(what, warning);
      Report(what, status,
             settings.backend == Backend::kSaccade ? settings.architecture : NameOf(settings.backend));
    }
  }

  // ALREADY_EXISTS if another repository has a model of this name, so that the daemon would not start.
  absl::Status CheckUnique(const std::string& name, const std::string& repository) {
    const auto [other, is_new] = repository_of_.emplace(name, repository);
    if (is_new) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("is in both ", other->second, " and ", repository, "; keep only one of them"));
  }

  // Further lines of the warning, such as a program's stack, are indented.
  void Warn(const std::string& what, const std::string& warning) {
    out_ << "WARNING " << what << ": " << absl::StrReplaceAll(warning, {{"\n", "\n  "}}) << std::endl;
  }

  // Writes the line of one check.
  void Report(const std::string& what, const absl::Status& status, const std::string& kind) {
    ++checked_;
    if (status.ok()) {
      out_ << "OK      " << what << " (" << kind << ")" << std::endl;
      return;
    }
    ++wrong_;
    out_ << "ERROR   " << what << ": " << status.message() << std::endl;
  }

  const Flags& flags_;
  std::ostream& out_;
  // The first repository that has a model of this name.
  std::map<std::string, std::string> repository_of_;
  // Numbers of lines that begin with OK or ERROR, and with ERROR.
  int checked_ = 0;
  int wrong_ = 0;
};

}  // namespace

absl::Status CheckConfig(const Flags& flags, std::ostream& out) {
  for (const std::string& warning : flags.warnings) out << "WARNING " << warning << std::endl;
  Checker checker(flags, out);
  if (!checker.CheckEnvironment()) return checker.Outcome();
  for (const std::string& repository : flags.model_repositories) checker.Check(repository);
  return checker.Outcome();
}

}  // namespace saccade::server

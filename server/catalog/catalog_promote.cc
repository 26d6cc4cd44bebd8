// What the catalog does when it is decided whether a shadow version is promoted.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/catalog/catalog.h"
#include "server/logging/log.h"
#include "server/repository/stamps.h"

namespace saccade::server {

void Catalog::ApplyDecisions() {
  for (const ModelTable::Handle& model : table_.Served()) {
    const std::shared_ptr<Shadow> shadow = model->shadow();
    if (shadow == nullptr) continue;
    if (auto decision = shadow->TakeDecision()) ApplyDecision(*model, *std::move(decision));
  }
  ReportChanges();
}

void Catalog::ApplyDecision(const ServedModel& replaced, GateDecision decision) {
  const ShadowRule& rule = *replaced.settings().shadow;
  const std::string name = replaced.name();
  const bool promoted = decision.promoted;
  Log(promoted ? LogLevel::kInfo : LogLevel::kWarning,
      promoted ? "shadow version promoted" : "shadow version refused",
      {{"model", name},
       {"version", rule.version},
       {"replaces", replaced.version()},
       {"compared", decision.measures.compared},
       {"rule", rule.promote->text},
       {"reason", decision.reason}});
  // Files that have changed since are another version, which is tried once they are loaded.
  const auto tried = tried_files_.find(name);
  const auto from = applied_from_.find(name);
  if (tried == tried_files_.end() || from == applied_from_.end()) return;
  promotions_.Keep(name,
                   {.rule = rule.promote->text,
                    .replaces = replaced.version(),
                    .shadow = rule.version,
                    .decision = std::move(decision)},
                   tried->second);
  if (!promoted) return;
  const auto now = StampModel(from->second, name);
  if (!now.ok() || *now != tried->second) {
    Log(LogLevel::kWarning, "the promoted version does not answer: its files have changed since",
        {{"model", name},
         {"version", rule.version},
         {"expected", "the files that were tried; those that are there now are tried once they are loaded"}});
    return;
  }
  const std::string repository = from->second;
  // A rule for promotions is only ever part of the repository's configuration.
  PlanRetry(repository, name, Apply(repository, name, std::nullopt, {}, 0));
}

}  // namespace saccade::server

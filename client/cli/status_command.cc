#include "absl/strings/str_cat.h"
#include "client/cli/connect.h"
#include "client/cli/failure.h"
#include "client/cli/json.h"
#include "client/cli/model_names.h"
#include "client/cli/models.h"
#include "client/cli/table.h"

namespace saccade::client {
namespace {

struct ModelStatus {
  Model model;
  Health health = Health::kUnknown;
};

struct DaemonStatus {
  ServerMetadata server;
  bool live = false;
  bool ready = false;
  Health health = Health::kUnknown;
  std::vector<ModelStatus> models;
};

// A name that the health service does not know (yet) is unknown, not an error.
absl::StatusOr<Health> HealthOf(Client& client, absl::string_view service) {
  auto health = client.CheckHealth(service);
  if (absl::IsNotFound(health.status())) return Health::kUnknown;
  return health;
}

absl::StatusOr<DaemonStatus> Ask(Client& client) {
  DaemonStatus result;
  const auto live = client.ServerLive();
  if (!live.ok()) return live.status();
  const auto ready = client.ServerReady();
  if (!ready.ok()) return ready.status();
  auto server = client.GetServerMetadata();
  if (!server.ok()) return server.status();
  const auto health = HealthOf(client, "");
  if (!health.ok()) return health.status();
  auto models = client.ListModels();
  if (!models.ok()) return models.status();
  result.live = *live;
  result.ready = *ready && *health == Health::kServing;
  result.server = *std::move(server);
  result.health = *health;
  for (Model& model : *models) {
    const auto model_health = HealthOf(client, model.name);
    if (!model_health.ok()) return model_health.status();
    result.models.push_back({std::move(model), *model_health});
  }
  return result;
}

void PrintJson(Console& console, const std::string& url, const DaemonStatus& status) {
  nlohmann::ordered_json document = {{"version", 1},
                                     {"url", url},
                                     {"live", status.live},
                                     {"ready", status.ready},
                                     {"health", HealthName(status.health)},
                                     {"server",
                                      {{"name", status.server.name},
                                       {"version", status.server.version},
                                       {"extensions", status.server.extensions}}},
                                     {"models", nlohmann::ordered_json::array()}};
  for (const ModelStatus& item : status.models) {
    nlohmann::ordered_json json = {{"name", item.model.name},
                                   {"version", item.model.version},
                                   {"state", StateName(item.model.state)},
                                   {"health", HealthName(item.health)}};
    if (!item.model.reason.empty()) json["reason"] = item.model.reason;
    document["models"].push_back(std::move(json));
  }
  console.out << Dump(document);
}

void PrintText(Console& console, const std::string& url, const DaemonStatus& status) {
  console.out << Printable(absl::StrCat(url, "  ", status.server.name, " ", status.server.version)) << "  "
              << (status.live ? "live" : "not live") << "  "
              << Paint(console, Tone::kStrong, status.ready ? "ready" : "not ready") << '\n';
  if (status.models.empty()) {
    console.out << "no models\n";
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const ModelStatus& item : status.models) {
    rows.push_back({item.model.name, absl::StrCat(item.model.version), StateName(item.model.state),
                    HealthName(item.health), item.model.reason});
  }
  PrintTable(console, {{"NAME"}, {"VERSION", true}, {"STATE"}, {"HEALTH"}, {""}}, rows);
}

}  // namespace

int RunStatus(const StatusCommand& command, Console& console) {
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (command.wait_seconds > 0) {
    const absl::Status waited = client->WaitUntilServing("", absl::Seconds(command.wait_seconds));
    if (!waited.ok()) {
      Complain(console, waited.message());
      return ExitCodeOf(waited);
    }
  }
  const auto status = Ask(*client);
  if (!status.ok()) return ComplainOf(console, command.connection, status.status());
  if (command.format == Format::kJson) {
    PrintJson(console, command.connection.url, *status);
  } else {
    PrintText(console, command.connection.url, *status);
  }
  return Flush(console) && status->ready ? kExitOk : kExitFailure;
}

}  // namespace saccade::client

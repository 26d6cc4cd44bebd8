#include "client/cli/commands/status.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/connect.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/status_text.h"

namespace saccade::client {
namespace {

// Terminal codes that move the cursor to the upper left corner and clear the screen.
constexpr char kClearScreen[] = "\033[H\033[J";

// A service that the health service does not know (yet) is kUnknown, not an error.
absl::StatusOr<Health> HealthOf(Client& client, absl::string_view service) {
  auto health = client.CheckHealth(service);
  if (absl::IsNotFound(health.status())) return Health::kUnknown;
  return health;
}

// A daemon without statistics still has a status.
absl::Status AddStatistics(Client& client, DaemonStatus& status) {
  auto statistics = client.GetStatistics();
  if (absl::IsUnimplemented(statistics.status())) return absl::OkStatus();
  if (!statistics.ok()) return statistics.status();
  std::map<std::pair<std::string, int64_t>, ModelStatistics*> known;
  for (ModelStatistics& one : *statistics) known[{one.model, one.version}] = &one;
  for (ModelStatus& item : status.models) {
    const auto found = known.find({item.model.name, item.model.version});
    if (found != known.end()) item.done = std::move(*found->second);
  }
  return absl::OkStatus();
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
  if (absl::Status added = AddStatistics(client, result); !added.ok()) return added;
  return result;
}

void Show(const StatusCommand& command, const DaemonStatus& status, Console& console) {
  if (command.format == Format::kJson) {
    console.out << StatusJson(command.connection.url, status, command.watch_seconds > 0);
  } else {
    PrintStatus(console, command.connection.url, status);
  }
}

// Prints the status until the output is closed: first the statistics since the models were loaded, then those
// since the previous round. If the daemon cannot be reached, prints that and tries again.
int Watch(const StatusCommand& command, Client& client, DaemonStatus first, absl::Time then,
          Console& console) {
  const bool in_place = console.terminal && command.format == Format::kText;
  if (in_place) console.out << kClearScreen;
  Show(command, first, console);
  DaemonStatus before = std::move(first);
  while (Flush(console)) {
    absl::SleepFor(absl::Seconds(command.watch_seconds));
    const absl::Time now = absl::Now();
    auto status = Ask(client);
    if (in_place) console.out << kClearScreen;
    if (status.ok()) {
      // Separates the blocks if they do not replace each other.
      if (!in_place && command.format == Format::kText) console.out << '\n';
      Show(command, Since(before, *status, now - then), console);
      before = *std::move(status);
      then = now;
    } else if (in_place) {
      console.out << Printable(TextOf(status.status(), command.connection.url).what) << '\n';
    } else {
      ComplainOf(console, command.connection, status.status());
    }
  }
  return kExitFailure;
}

// How long a wait is silent before it says what it waits for.
constexpr absl::Duration kSilentWait = absl::Seconds(3);

std::string WhyNotServing(Client& client, const StatusCommand& command) {
  const auto health = client.CheckHealth("");
  if (health.ok()) return "the daemon answers, and is not ready yet; saccade models shows what it loads";
  const FailureText why = TextOf(health.status(), command.connection.url);
  return why.advice.empty() ? why.what : absl::StrCat(why.what, ": ", why.advice);
}

// Returns kExitOk once the daemon serves; else complains and returns the exit code.
int AwaitServing(Client& client, const StatusCommand& command, Console& console) {
  const absl::Duration all = absl::Seconds(command.wait_seconds);
  absl::Status waited = client.WaitUntilServing("", std::min(all, kSilentWait));
  if (absl::IsDeadlineExceeded(waited) && all > kSilentWait) {
    Complain(console, absl::StrCat("still waiting: ", WhyNotServing(client, command)));
    waited = client.WaitUntilServing("", all - kSilentWait);
  }
  if (waited.ok()) return kExitOk;
  if (!absl::IsDeadlineExceeded(waited)) return ComplainOf(console, command.connection, waited);
  Complain(console, absl::StrCat("the daemon at ", command.connection.url, " was not serving within ",
                                 absl::FormatDuration(all), ": ", WhyNotServing(client, command)));
  return kExitNotServing;
}

}  // namespace

int RunStatus(const StatusCommand& command, Console& console) {
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (command.wait_seconds > 0) {
    if (const int waited = AwaitServing(*client, command, console); waited != kExitOk) return waited;
  }
  const absl::Time then = absl::Now();
  const auto status = Ask(*client);
  if (!status.ok()) return ComplainOf(console, command.connection, status.status());
  if (command.watch_seconds > 0) return Watch(command, *client, *status, then, console);
  Show(command, *status, console);
  if (!Flush(console)) return kExitFailure;
  return status->ready ? kExitOk : kExitNotServing;
}

}  // namespace saccade::client

#include "client/cli/commands/connect.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/secrets.h"
#include "client/cli/output/failure.h"

namespace saccade::client {

std::unique_ptr<Client> ConnectOrComplain(Console& console, const Connection& connection) {
  ClientOptions options;
  options.url = connection.url;
  options.timeout = absl::Seconds(connection.timeout_seconds);
  options.max_message_bytes = connection.max_message_bytes;
  if (absl::Status read = ReadSecrets(connection, console, options); !read.ok()) {
    Complain(console, read.message());
    return nullptr;
  }
  auto client = Client::Connect(std::move(options));
  if (client.ok()) return *std::move(client);
  Complain(console, client.status().message());
  return nullptr;
}

int ComplainOf(Console& console, const Connection& connection, const absl::Status& status) {
  const FailureText explanation = TextOf(status, connection.url);
  Complain(console, explanation.advice.empty() ? explanation.what
                                               : absl::StrCat(explanation.what, ": ", explanation.advice));
  return ExitCodeOf(status);
}

}  // namespace saccade::client

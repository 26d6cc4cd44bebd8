// A client of one Saccade daemon, or of all replicas behind one name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace saccade::client {

struct ClientOptions {
  // HOST:PORT or a gRPC target such as unix:/run/saccade.sock. A host name is resolved to all its addresses
  // and calls go to them in turn, so that every replica behind a headless service gets its share.
  std::string url = "127.0.0.1:8001";
  // Of one call, from start to answer. A daemon that is overloaded uses it to refuse what it cannot finish.
  absl::Duration timeout = absl::Seconds(30);
  // Of one message, both ways; the daemon's own default. gRPC's 4 MiB is less than many a picture.
  int64_t max_message_bytes = 64 << 20;
  // Off, because a retry doubles the load of a daemon that just said it has too much. When on, gRPC repeats
  // a call that came back UNAVAILABLE up to three times, waiting as long as the daemon asks for.
  bool retry = false;
};

struct ClassifyOptions {
  // 0 takes the highest version that is ready.
  int64_t version = 0;
  // How many classes to return; 0 leaves it to the daemon.
  int top_k = 0;
  // Larger is served first. Between -100 and 100.
  int priority = 0;
  // Echoed in the answer and in every log line of the daemon about this request.
  std::string request_id;
};

// Thread-safe: any number of threads may call at once; their calls share connections. Every call blocks until
// the answer, an error, or the timeout. Errors carry the daemon's canonical code and message (see status.h
// for their details); a daemon that cannot be reached is UNAVAILABLE and IsUnreachable().
class Client {
 public:
  // Checks the address but does not connect: the first call does. INVALID_ARGUMENT if url is no address or
  // another option is out of range.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `picture` is an encoded picture as it lies on disk (JPEG, PNG, WebP or BMP); it is copied once, into the
  // message.
  absl::StatusOr<Classification> Classify(absl::string_view model, absl::string_view picture,
                                          const ClassifyOptions& options = {});

  // Every model version the daemon knows, ready or not.
  absl::StatusOr<std::vector<Model>> ListModels();

  // NOT_FOUND if the model, or that version of it, is unknown. Version 0 is the highest that is ready.
  absl::StatusOr<Model> GetModel(absl::string_view model, int64_t version = 0);

  // Whether the model is served; the empty name asks for the daemon as a whole. NOT_FOUND if it is unknown.
  absl::StatusOr<Health> CheckHealth(absl::string_view model = "");

  // Returns once the model (or the daemon as a whole) is served, however often the daemon goes and comes
  // until then. DEADLINE_EXCEEDED after `timeout`, which stands in for the client's own.
  absl::Status WaitUntilServing(absl::string_view model, absl::Duration timeout);

  // Whether the daemon's process answers, and whether it and all its models are ready.
  absl::StatusOr<bool> ServerLive();
  absl::StatusOr<bool> ServerReady();

  absl::StatusOr<ServerMetadata> GetServerMetadata();

  const ClientOptions& options() const { return options_; }

 private:
  struct Transport;
  Client(ClientOptions options, std::unique_ptr<Transport> transport);

  const ClientOptions options_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace saccade::client

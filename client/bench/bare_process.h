// Runs the bare server in its own process. In the clients' process it would share their polling threads and
// be faster than any real server.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace saccade::client {

// Not thread-safe.
class BareProcess {
 public:
  // Forks the process, which then waits for Start. REQUIRES: no threads are running and gRPC has not been
  // used, as neither survives a fork.
  BareProcess();
  // Ends the process and waits for it.
  ~BareProcess();
  BareProcess(const BareProcess&) = delete;
  BareProcess& operator=(const BareProcess&) = delete;

  // Starts the server and returns its HOST:PORT. Call once. INTERNAL if the process has ended.
  absl::StatusOr<std::string> Start(const std::string& predict_answer, const std::string& live_answer);

 private:
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

}  // namespace saccade::client

// The bare server in a process of its own. In the same process as the clients it would share their polling
// threads, which makes it faster than any server can be.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace saccade::client {

// Not thread-safe.
class BareProcess {
 public:
  // Forks the process, which waits to be told what to answer. REQUIRES: no thread runs yet, and gRPC was not
  // used: neither survives a fork.
  BareProcess();
  // Ends the process and waits for it.
  ~BareProcess();
  BareProcess(const BareProcess&) = delete;
  BareProcess& operator=(const BareProcess&) = delete;

  // Returns the server's HOST:PORT. To be called once. INTERNAL if the process is gone.
  absl::StatusOr<std::string> Start(const std::string& predict_answer, const std::string& live_answer);

 private:
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

}  // namespace saccade::client

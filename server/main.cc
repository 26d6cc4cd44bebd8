#include <sys/prctl.h>

#include <cstdlib>
#include <iostream>

#include "server/core/memory_reserve.h"
#include "server/lifecycle/check_config.h"
#include "server/lifecycle/daemon.h"
#include "server/lifecycle/descriptors.h"
#include "server/lifecycle/environment.h"
#include "server/lifecycle/flags.h"
#include "server/lifecycle/signals.h"
#include "server/lifecycle/start_logging.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// How long a reader of stderr that stalls may delay the exit.
constexpr absl::Duration kMaxFlush = absl::Seconds(2);

// Serves until the end, and returns the exit code.
int Serve(const Flags& flags) {
  BlockSignals();
  auto daemon = Daemon::Start(flags);
  if (!daemon.ok()) {
    Log(LogLevel::kError, "saccaded cannot start", {{"reason", daemon.status().message()}});
    return EXIT_FAILURE;
  }
  const absl::Status end = (*daemon)->Run();
  if (!end.ok()) Log(LogLevel::kError, "saccaded ends with an error", {{"reason", end.message()}});
  // Joining what did not finish in its time could take for ever, and so could freeing the memory of a lost
  // GPU.
  if (absl::IsDeadlineExceeded(end) || absl::IsInternal(end)) {
    FlushLog(kMaxFlush);
    std::_Exit(EXIT_FAILURE);
  }
  daemon->reset();
  Log(LogLevel::kInfo, "saccaded has ended");
  return end.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace saccade::server

int main(int argc, char** argv) {
  using namespace saccade::server;  // NOLINT(google-build-using-namespace): nothing but this daemon is in
                                    // here.
  // Otherwise the program would be named "exe" once it has executed itself again (environment.h).
  prctl(PR_SET_NAME, "saccaded");
  OpenStandardDescriptors();
  int exit_code = 0;
  const auto flags = ParseFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  // Measures how long threads should spin, which help and wrong flags do not need.
  SetLibraryDefaults(argv);
  StartLogging(*flags);
  HoldMemoryReserve();
  if (flags->check_config) {
    exit_code = CheckConfig(*flags, std::cout).ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  } else {
    exit_code = Serve(*flags);
  }
  FlushLog(kMaxFlush);
  return exit_code;
}

#include <cstdlib>
#include <iostream>

#include "server/lifecycle/check_config.h"
#include "server/lifecycle/daemon.h"
#include "server/lifecycle/environment.h"
#include "server/lifecycle/flags.h"
#include "server/lifecycle/signals.h"
#include "server/lifecycle/start_logging.h"
#include "server/logging/log.h"

int main(int argc, char** argv) {
  using namespace saccade::server;  // NOLINT(google-build-using-namespace): nothing but this daemon is in
                                    // here.
  int exit_code = 0;
  const auto flags = ParseFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  // Measures how long threads should spin, which help and wrong flags do not need.
  SetLibraryDefaults(argv);
  StartLogging(*flags);
  if (flags->check_config) return CheckConfig(*flags, std::cout).ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  BlockSignals();
  auto daemon = Daemon::Start(*flags);
  if (!daemon.ok()) {
    Log(LogLevel::kError, "saccaded cannot start", {{"reason", daemon.status().message()}});
    return EXIT_FAILURE;
  }
  const absl::Status end = (*daemon)->Run();
  if (!end.ok()) Log(LogLevel::kError, "saccaded ends with an error", {{"reason", end.message()}});
  // Joining what did not finish in its time could take for ever.
  if (absl::IsDeadlineExceeded(end)) std::_Exit(EXIT_FAILURE);
  daemon->reset();
  Log(LogLevel::kInfo, "saccaded has ended");
  return end.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "client/cli/commands/app.h"
#include "client/cli/output/failure.h"

namespace {

// Opens /dev/null for every standard stream that the caller has closed (`saccade … >&-`): otherwise the next
// socket would get its number, and output would be written into the socket. Opened in the wrong direction, so
// that using the stream is still an error.
void FillStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardStreams();
  // A closed pipe is detected when writing fails.
  std::signal(SIGPIPE, SIG_IGN);
  // The command prints its own messages about connections instead of gRPC's log.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  saccade::client::Console console = saccade::client::StandardConsole();
  try {
    return saccade::client::RunApp(std::vector<std::string>(argv + 1, argv + argc), console);
  } catch (const std::exception& error) {
    saccade::client::Complain(console, error.what());
    return saccade::client::kExitFailure;
  }
}

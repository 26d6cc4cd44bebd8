#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/failure.h"

namespace {

// With a standard stream closed by the caller (`saccade … >&-`), the next socket would take its number and
// the answers would be written into it. Opened the wrong way round, so that using it is an error still.
void FillStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardStreams();
  // A reader that goes away is noticed when writing fails.
  std::signal(SIGPIPE, SIG_IGN);
  // What gRPC logs about a connection, the command says in words of its own.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  saccade::client::Console console = saccade::client::StandardConsole();
  try {
    return saccade::client::RunApp(std::vector<std::string>(argv + 1, argv + argc), console);
  } catch (const std::exception& error) {
    saccade::client::Complain(console, error.what());
    return saccade::client::kExitFailure;
  }
}

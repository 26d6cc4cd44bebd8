#include "client/cli/commands/external.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace saccade::client {

bool IsExternalCommand(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 7> kNames = {"bulk",     "evaluate", "import", "prove",
                                                      "quantize", "replay",   "verify"};
  return !arguments.empty() && std::find(kNames.begin(), kNames.end(), arguments[0]) != kNames.end();
}

std::string RunExternalCommand(const std::vector<std::string>& arguments) {
  std::string program = "saccade-" + arguments[0];
  std::vector<char*> given = {program.data()};
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (std::string& argument : rest) given.push_back(argument.data());
  given.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv((own.parent_path() / program).c_str(), given.data());
  execvp(given[0], given.data());
  const int failure = errno;
  if (failure == ENOENT && arguments[0] == "quantize") {
    return program +
           " is neither beside saccade nor in PATH; install it where saccaded is: it comes with the daemon";
  }
  if (failure == ENOENT) {
    // Some commands need an extra of the package, which has the command's name except for verify.
    const bool is_plain = arguments[0] == "prove" || arguments[0] == "replay";
    const std::string extra = arguments[0] == "verify" ? "import" : arguments[0];
    const std::string package = is_plain ? "./client/python" : "'./client/python[" + extra + "]'";
    // Debian's Python refuses to install packages outside of a virtual environment.
    return program +
           " is not in PATH; it comes with the Python package. In a checkout of Saccade: "
           "python3 -m venv .venv && .venv/bin/pip install " +
           package + " && export PATH=$PWD/.venv/bin:$PATH";
  }
  return program + " cannot be started: " + std::strerror(failure);
}

}  // namespace saccade::client

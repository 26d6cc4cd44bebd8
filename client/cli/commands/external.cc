#include "client/cli/commands/external.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace saccade::client {

bool IsExternalCommand(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments[0] == "bulk" || arguments[0] == "evaluate");
}

std::string RunExternalCommand(const std::vector<std::string>& arguments) {
  std::string program = "saccade-" + arguments[0];
  std::vector<char*> given = {program.data()};
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  for (std::string& argument : rest) given.push_back(argument.data());
  given.push_back(nullptr);
  execvp(given[0], given.data());
  const int failure = errno;
  if (failure == ENOENT) {
    return program + " is not in PATH; it comes with the Python package: pip install 'saccade[" +
           arguments[0] + "]'";
  }
  return program + " cannot be started: " + std::strerror(failure);
}

}  // namespace saccade::client

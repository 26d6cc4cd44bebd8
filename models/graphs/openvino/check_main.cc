// saccade-openvino-check FILE MEMORY_BYTES PROCESSOR_SECONDS: reads and compiles a graph as the daemon would,
// within limits, and writes "ok", or "no " and the reason, to its standard output (check_process.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "models/graphs/graph_api.h"

namespace saccade::models {
namespace {

constexpr char kLibrary[] = "libsaccade_openvino.so";

void Limit(__rlimit_resource resource, uint64_t to) {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || to < limit.rlim_max ? to : limit.rlim_max;
  setrlimit(resource, &limit);
}

void Say(int answer, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(answer, rest.data(), rest.size());
    if (written <= 0) return;
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

std::string Check(const char* path) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  void* const opened = dlopen((own.parent_path() / kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return std::string("no ") + dlerror();
  const auto get = reinterpret_cast<const GraphApi* (*)()>(dlsym(opened, kGraphApiSymbol));
  const GraphApi* const api = get == nullptr ? nullptr : get();
  if (api == nullptr || api->version != kGraphApiVersion)
    return std::string("no ") + kLibrary + " is of another version than the program that checks graphs";
  const GraphLoadOptions options = {.path = path, .threads = 1, .instances = 1, .bfloat16 = 0};
  char error[4096] = "no reason given";
  return api->load(&options, error, sizeof(error)) != nullptr ? "ok" : std::string("no ") + error;
}

int Main(int count, char** arguments) {
  if (count != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // The libraries' own words, and those of the C library about a crash, are not the answer.
  const int answer = dup(STDOUT_FILENO);
  const int nothing = open("/dev/null", O_RDWR);
  if (answer < 0 || nothing < 0) return 2;
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, std::strtoull(arguments[3], nullptr, 10));
  Limit(RLIMIT_AS, std::strtoull(arguments[2], nullptr, 10));
  Say(answer, Check(arguments[1]));
  // Without the libraries' destructors, which the check does not need.
  _exit(0);
}

}  // namespace
}  // namespace saccade::models

int main(int count, char** arguments) { return saccade::models::Main(count, arguments); }

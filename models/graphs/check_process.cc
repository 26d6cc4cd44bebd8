#include "models/graphs/check_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/graphs/graph_plugin.h"

namespace saccade::models {
namespace {

constexpr char kProgram[] = "saccade-openvino-check";
constexpr size_t kMaxAnswer = 8192;

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw LoadError(std::string("a pipe to the checking process cannot be made: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    CloseWrite();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void CloseWrite() {
    if (write >= 0) close(write);
    write = -1;
  }
};

pid_t Start(const std::string& path, uint64_t memory_bytes, int processor_seconds, int answer) {
  std::string program = std::filesystem::path(GraphPluginFolder()) / kProgram;
  std::string file = path;
  std::string memory = std::to_string(memory_bytes);
  std::string seconds = std::to_string(processor_seconds);
  char* const arguments[] = {program.data(), file.data(), memory.data(), seconds.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, answer, STDOUT_FILENO);
  pid_t made = 0;
  const int failed = posix_spawn(&made, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return made;
  throw LoadError(program + ", which checks graphs before they are loaded, cannot be started: " +
                  std::strerror(failed) + "; install the package saccade-openvino of the same version");
}

// Reads until the process closes its end. False if that takes too long.
bool ReadAnswer(int from, int seconds, std::string& answer) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd watched = {.fd = from, .events = POLLIN, .revents = 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const size_t room = kMaxAnswer - std::min(kMaxAnswer, answer.size());
    answer.append(piece.data(), std::min(room, static_cast<size_t>(got)));
  }
}

std::string HowItEnded(int status, uint64_t memory_bytes, const GraphCheckLimits& limits) {
  const std::string bounds = " (it may use " + std::to_string(memory_bytes >> 20) + " MiB of memory and " +
                             std::to_string(limits.processor_seconds) + " s of processor time)";
  if (!WIFSIGNALED(status))
    return "the checking process ended with exit code " + std::to_string(WEXITSTATUS(status)) + bounds;
  if (WTERMSIG(status) == SIGXCPU)
    return "the check took more than " + std::to_string(limits.processor_seconds) + " s of processor time";
  return "the checking process was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
         strsignal(WTERMSIG(status)) + ")" + bounds;
}

}  // namespace

void RunCheckProcess(const std::string& path, uint64_t memory_bytes, const GraphCheckLimits& limits) {
  Pipe pipe;
  const pid_t process = Start(path, memory_bytes, limits.processor_seconds, pipe.write);
  pipe.CloseWrite();
  std::string answer;
  const bool in_time = ReadAnswer(pipe.read, limits.seconds, answer);
  if (!in_time) kill(process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    throw LoadError("OpenVINO had not read and compiled the file after " + std::to_string(limits.seconds) +
                    " s, so the daemon does not load it");
  if (answer == "ok") return;
  if (answer.starts_with("no "))
    throw LoadError("OpenVINO does not take the file: " +
                    (IsUtf8(answer) ? answer.substr(3) : "no readable reason"));
  throw LoadError("OpenVINO cannot read and compile the file: " + HowItEnded(status, memory_bytes, limits) +
                  ", so the daemon does not load it; the file may be damaged");
}

}  // namespace saccade::models

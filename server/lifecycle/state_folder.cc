#include "server/lifecycle/state_folder.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "models/device/instruction_set.h"

namespace saccade::server {
namespace {

// The variable's value, up to the first colon, with `below` appended; empty unless it is an absolute path.
std::string FolderIn(const char* variable, const char* below) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value != '/') return "";
  // systemd separates several folders by colons.
  const std::string folders = value;
  return folders.substr(0, folders.find(':')) + below;
}

// Read from the processor itself, since a sandbox may hide /proc/cpuinfo.
std::string ProcessorName() {
#ifdef __x86_64__
  constexpr unsigned kFirst = 0x80000002;
  constexpr unsigned kParts = 3;
  std::array<unsigned, 4 * kParts + 1> text{};
  unsigned* part = text.data();
  for (unsigned leaf = kFirst; leaf < kFirst + kParts; ++leaf, part += 4) {
    if (__get_cpuid(leaf, part, part + 1, part + 2, part + 3) == 0) return "unknown processor";
  }
  std::string name(reinterpret_cast<const char*>(text.data()));
#else
  std::string name;
  std::getline(std::ifstream("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"), name);
#endif
  // It is written into a line of text.
  for (char& c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = ' ';
  }
  absl::RemoveExtraAsciiWhitespace(&name);
  return name.empty() ? "unknown processor" : name;
}

}  // namespace

std::string DefaultStateFolder() {
  std::string folder = FolderIn("STATE_DIRECTORY", "");
  if (folder.empty()) folder = FolderIn("XDG_STATE_HOME", "/saccade");
  if (folder.empty()) folder = FolderIn("HOME", "/.local/state/saccade");
  return folder;
}

std::string MachineName(int cores) {
  return absl::StrCat(ProcessorName(), ", ", models::InstructionSet(), ", ", cores,
                      cores == 1 ? " core" : " cores");
}

std::string BuildName(const std::string& version) {
  struct stat file{};
  if (stat("/proc/self/exe", &file) != 0) return version;
  return absl::StrCat(version, " of ", file.st_size, " bytes, ", file.st_mtime);
}

}  // namespace saccade::server

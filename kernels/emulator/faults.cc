#include "kernels/emulator/faults.h"

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace saccade::emulator {
namespace {

const char* NameOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kBarrier:
      return "barrier";
    case Primitive::kShuffle:
      return "shuffle";
    case Primitive::kGather:
      return "gather";
    case Primitive::kCommit:
      return "commit";
    case Primitive::kWait:
      return "wait";
  }
  return "";
}

// KIND FILE:LINE:COLUMN, with the path from kernels/ on.
std::string Describe(Primitive primitive, const std::source_location& where) {
  std::string_view file = where.file_name();
  const size_t root = file.rfind("kernels/");
  if (root != std::string_view::npos) file.remove_prefix(root);
  return std::string(NameOf(primitive)) + " " + std::string(file) + ":" + std::to_string(where.line()) + ":" +
         std::to_string(where.column());
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The places reached so far, written when the program ends.
class Places {
 public:
  explicit Places(std::string path) : path_(std::move(path)) {}
  ~Places() {
    if (path_.empty()) return;
    std::ofstream file(path_);
    for (const std::string& place : reached_) file << place << "\n";
    file.close();
    if (!file) std::abort();
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  bool wanted() const { return !path_.empty(); }
  void Add(std::string place) {
    const std::lock_guard lock(mutex_);
    reached_.insert(std::move(place));
  }

 private:
  const std::string path_;
  std::mutex mutex_;
  std::set<std::string> reached_;
};

const std::string fault = Variable("SACCADE_EMULATOR_FAULT");
Places places(Variable("SACCADE_EMULATOR_PLACES"));

}  // namespace

bool IsFaulty(Primitive primitive, const std::source_location& where) {
  if (fault.empty() && !places.wanted()) return false;
  std::string place = Describe(primitive, where);
  const bool is_here = place == fault;
  if (places.wanted()) places.Add(std::move(place));
  return is_here;
}

bool HasFault() { return !fault.empty(); }

}  // namespace saccade::emulator

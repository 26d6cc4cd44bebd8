#include "server/catalog/core_contention.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/procfs.h"

namespace saccade::server {
namespace {

// The daemon, the process from which decode workers are forked, and the workers.
constexpr int kGenerations = 3;
// Looking for the daemon's own children reads a file for each of its threads, of which there may be
// thousands. It does so if one of them has ended, and from time to time for new ones.
constexpr int kReadsBetweenLooks = 60;

}  // namespace

CoreUseMeter::CoreUseMeter(std::vector<int> processors, int cores, std::string root)
    : processors_(std::move(processors)), cores_(std::max(1, cores)), root_(std::move(root)) {}

std::optional<CoreUse> CoreUseMeter::Measure() {
  std::optional<Reading> now = Read();
  const std::optional<Reading> before = std::exchange(last_, now);
  if (!now || !before || now->total <= before->total) return std::nullopt;
  double own = 0;
  for (const auto& [process, ticks] : now->own) {
    const auto earlier = before->own.find(process);
    own += std::max(0.0, ticks - (earlier == before->own.end() ? 0 : earlier->second));
  }
  // Every processor has had as many ticks.
  const double ticks_of_one = (now->total - before->total) / static_cast<double>(processors_.size());
  const double others = std::max(0.0, now->busy - before->busy - own) / ticks_of_one;
  const double free = static_cast<double>(processors_.size()) - cores_;
  return CoreUse{.by_others = std::clamp((others - std::max(0.0, free)) / cores_, 0.0, 1.0),
                 .own = std::clamp(own / ticks_of_one / cores_, 0.0, 1.0)};
}

std::optional<CoreUseMeter::Reading> CoreUseMeter::Read() {
  const auto stat = ReadProcFile(root_ + "/proc/stat");
  if (!stat) return std::nullopt;
  const std::set<int> wanted(processors_.begin(), processors_.end());
  Reading reading;
  size_t found = 0;
  std::istringstream lines(*stat);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("cpu") || line.starts_with("cpu ")) continue;
    std::istringstream words(line.substr(3));
    int processor = 0;
    std::string rest;
    if (!(words >> processor) || wanted.count(processor) == 0 || !std::getline(words, rest)) continue;
    const auto ticks = ParseCpuTicks("cpu" + rest);
    if (!ticks) return std::nullopt;
    reading.busy += ticks->busy;
    reading.total += ticks->total;
    ++found;
  }
  if (found == 0 || found != wanted.size()) return std::nullopt;
  int id = 0;
  if (!AddProcess("self", &reading, &id)) return std::nullopt;
  // The kernel may be built without these files.
  if (!ReadProcFile(absl::StrCat(root_, "/proc/self/task/", id, "/children"))) return std::nullopt;
  const bool all_live = std::all_of(children_.begin(), children_.end(), [&](const std::string& child) {
    return AddTree(child, kGenerations - 1, &reading);
  });
  if (all_live && reads_++ % kReadsBetweenLooks != 0) return reading;
  children_ = ChildrenOf("self");
  for (const std::string& child : children_) AddTree(child, kGenerations - 1, &reading);
  return reading;
}

bool CoreUseMeter::AddProcess(const std::string& process, Reading* reading, int* id) const {
  const auto text = ReadProcFile(absl::StrCat(root_, "/proc/", process, "/stat"));
  const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
  if (!stat) return false;
  std::istringstream(*text) >> *id;
  reading->own[*id] = stat->cpu_ticks;
  return true;
}

bool CoreUseMeter::AddTree(const std::string& process, int generations, Reading* reading) const {
  int id = 0;
  if (!AddProcess(process, reading, &id)) return false;
  if (generations <= 1) return true;
  // A child may just have ended.
  for (const std::string& child : ChildrenOf(process)) AddTree(child, generations - 1, reading);
  return true;
}

std::vector<std::string> CoreUseMeter::ChildrenOf(const std::string& process) const {
  std::vector<std::string> found;
  std::error_code error;
  // A thread that has ended has no such file.
  for (std::filesystem::directory_iterator task(absl::StrCat(root_, "/proc/", process, "/task"), error), end;
       !error && task != end; task.increment(error)) {
    std::istringstream children(ReadProcFile(task->path().string() + "/children").value_or(""));
    for (std::string child; children >> child;) found.push_back(child);
  }
  return found;
}

std::optional<double> ContentionChange::Add(absl::Time now, const CoreUse& use) {
  const double change = std::abs(use.by_others - tried_with_);
  if (since_ == absl::InfiniteFuture()) {
    if (change <= options_.begin) return std::nullopt;
    since_ = now;
    sum_ = 0;
    count_ = 0;
  } else if (change < options_.end) {
    since_ = absl::InfiniteFuture();
    return std::nullopt;
  }
  sum_ += use.by_others;
  ++count_;
  if (now - since_ < options_.hold || now < not_before_ || use.own > options_.max_own) return std::nullopt;
  tried_with_ = sum_ / count_;
  not_before_ = now + options_.pause;
  since_ = absl::InfiniteFuture();
  return tried_with_;
}

}  // namespace saccade::server

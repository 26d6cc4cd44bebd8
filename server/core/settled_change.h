// Detects that something which is looked at from time to time, such as a file, has changed and is no longer
// being written.
#pragma once

#include <optional>
#include <utility>

namespace saccade::server {

// Compares successive states with the one in use. A change counts once two successive looks have found the
// same state, because files that are being written differ each time. Uses no clock. Not thread-safe.
template <typename State>
class SettledChange {
 public:
  explicit SettledChange(State in_use) : in_use_(std::move(in_use)) {}

  // Records the state that was found. Returns true if it differs from the state in use and is the one that
  // the previous call recorded; also in later calls, until a state is in use that equals it.
  bool Look(State found) {
    // Compared as values: two std::optional, which State may be, would compare by whether they hold one.
    const bool settled = found_.has_value() && *found_ == found;
    found_ = std::move(found);
    return settled && *found_ != in_use_;
  }

  void Use(State state) { in_use_ = std::move(state); }
  // Makes the state that the last look found the one in use; does nothing before the first look.
  void UseFound() {
    if (found_) in_use_ = *found_;
  }

  const State& in_use() const { return in_use_; }

 private:
  State in_use_;
  // What the last look found.
  std::optional<State> found_;
};

}  // namespace saccade::server

// Counts memory. Linking this replaces operator new and delete for all libraries of the program.
#pragma once

#include <cstdint>

namespace saccade::server::testing {

// The most bytes of operator new that were in use at once since the object was made, beyond those in use
// then. One object at a time.
class PeakMemory {
 public:
  PeakMemory();
  int64_t bytes() const;

 private:
  int64_t before_;
};

}  // namespace saccade::server::testing

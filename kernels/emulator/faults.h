// Faults that a test puts into kernels while they run, without compiling them again: at one place of a source
// file a barrier or a wait is left out, or lanes are exchanged. kernels/emulator/faults.py tells which of
// them the emulated tests notice.
//
// Environment variables, read once:
//   SACCADE_EMULATOR_FAULT="barrier kernels/sao/sao.cuh:95:18"  the fault, by kind and place
//   SACCADE_EMULATOR_PLACES=FILE                                at exit, writes all places that were reached
#pragma once

#include <source_location>

namespace saccade::emulator {

enum class Primitive {
  kBarrier,  // the fault: threads do not wait
  kShuffle,  // the fault: the value of the next lane
  kGather,   // the fault: the first two lanes exchanged
  kCommit,   // the fault: the copies join the next group
  kWait,     // the fault: the thread does not wait
};

// Whether the fault is at this place. Notes that the place was reached.
bool IsFaulty(Primitive primitive, const std::source_location& where);

// Whether any fault was asked for.
bool HasFault();

}  // namespace saccade::emulator

// The folder for the daemon's measurements, and the names of the machine and program that they are valid for.
#pragma once

#include <string>

namespace saccade::server {

// The first of systemd's $STATE_DIRECTORY, $XDG_STATE_HOME/saccade and $HOME/.local/state/saccade whose
// variable is an absolute path; empty if there is none.
std::string DefaultStateFolder();

// The processor, the instruction sets that decide which code computes, and the cores in use, as one line.
std::string MachineName(int cores);

// `version` and the running program's file, as one line: another file of the same version differs in it.
std::string BuildName(const std::string& version);

}  // namespace saccade::server

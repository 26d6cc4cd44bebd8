// What a worker process may do: compute, use memory, and talk to the daemon over the socket that it has.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::server {

// Confines this process for good: no files, sockets, processes, signals to others or executable memory; the
// calls for them fail with EPERM. REQUIRES: the process has one thread. Returns what the kernel did not
// allow, with its error, or "". In sanitizer builds it does nothing, because their runtimes need files.
std::string EnterSandbox();

// Limits the process to `more_bytes` of address space beyond what it has now, and to `cpu_seconds` of
// processor time from now on, after which SIGXCPU ends it. `statm` is /proc/self/statm, opened before the
// sandbox was entered.
void LimitJob(int statm, uint64_t more_bytes, uint64_t cpu_seconds);

}  // namespace saccade::server

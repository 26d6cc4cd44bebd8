#include "server/lifecycle/descriptors.h"

#include <sys/resource.h>

namespace saccade::server {

uint64_t RaiseFileLimit() {
  rlimit limit{};
  // Every process has a limit, so this cannot fail; 1024 is the usual soft limit.
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur >= limit.rlim_max) return limit.rlim_cur;
  const rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace saccade::server

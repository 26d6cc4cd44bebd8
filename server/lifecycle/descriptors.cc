#include "server/lifecycle/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace saccade::server {

void OpenStandardDescriptors() {
  // open() returns the lowest number that is free.
  int opened = open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO) opened = open("/dev/null", O_RDWR);
  if (opened >= 0) close(opened);
}

uint64_t RaiseFileLimit() {
  rlimit limit{};
  // Every process has a limit, so this cannot fail; 1024 is the usual soft limit.
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur >= limit.rlim_max) return limit.rlim_cur;
  const rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace saccade::server

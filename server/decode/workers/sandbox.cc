#include "server/decode/workers/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace saccade::server {
namespace {

#if defined(SACCADE_ASAN) || defined(SACCADE_TSAN)
constexpr bool kConfined = false;
#else
constexpr bool kConfined = true;
#endif

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the system calls of decode workers are listed for x86-64 and AArch64 only"
#endif

// Bit of the system calls of x32, which have the architecture of x86-64.
constexpr uint32_t kX32 = 0x40000000;

// Allowed whatever their arguments are. The process has three descriptors: its socket, its shared memory, and
// its own /proc/self/statm.
constexpr uint32_t kAllowed[] = {
    SYS_recvfrom, SYS_sendto,    SYS_pread64,        SYS_close,          SYS_munmap,      SYS_mremap,
    SYS_madvise,  SYS_brk,       SYS_futex,          SYS_exit,           SYS_exit_group,  SYS_clock_gettime,
    SYS_getpid,   SYS_getrandom, SYS_rt_sigreturn,   SYS_rt_sigprocmask, SYS_sched_yield, SYS_gettimeofday,
    SYS_gettid,   SYS_getrusage, SYS_restart_syscall};

// Allowed unless they ask for executable memory: in both, the third argument is the protection.
constexpr uint32_t kMapping[] = {SYS_mmap, SYS_mprotect};

sock_filter Load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Goes on at the next instruction if equal, else skips `skip`.
sock_filter SkipUnless(uint32_t value, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
// Offset of the lower half of an argument; both architectures are little-endian.
constexpr uint32_t Argument(size_t index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

std::vector<sock_filter> MakeFilter() {
  const uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter = {
      Load(offsetof(seccomp_data, arch)),  SkipUnless(kArchitecture, 1),
      BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), Return(SECCOMP_RET_KILL_PROCESS),
      Load(offsetof(seccomp_data, nr)),    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1),
      Return(SECCOMP_RET_KILL_PROCESS),
  };
  for (const uint32_t call : kAllowed) {
    filter.push_back(SkipUnless(call, 1));
    filter.push_back(Return(SECCOMP_RET_ALLOW));
  }
  for (const uint32_t call : kMapping) {
    filter.push_back(SkipUnless(call, 4));
    filter.push_back(Load(Argument(2)));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
    filter.push_back(Return(refused));
    filter.push_back(Return(SECCOMP_RET_ALLOW));
  }
  // A process may change its own limits, which LimitJob() needs.
  filter.push_back(SkipUnless(SYS_prlimit64, 4));
  filter.push_back(Load(Argument(0)));
  filter.push_back(SkipUnless(0, 1));
  filter.push_back(Return(SECCOMP_RET_ALLOW));
  filter.push_back(Return(refused));
  filter.push_back(Return(refused));
  return filter;
}

void LowerLimit(__rlimit_resource resource, uint64_t to) {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = to < limit.rlim_max ? to : limit.rlim_max;
  setrlimit(resource, &limit);
}

}  // namespace

std::string EnterSandbox() {
  if (!kConfined) return "";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return std::string("PR_SET_NO_NEW_PRIVS: ") + std::strerror(errno);
  std::vector<sock_filter> filter = MakeFilter();
  const sock_fprog program = {.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return std::string("seccomp: ") + std::strerror(errno);
  return "";
}

void LimitJob(int statm, uint64_t more_bytes, uint64_t cpu_seconds) {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  LowerLimit(RLIMIT_CPU, static_cast<uint64_t>(used.tv_sec) + 1 + cpu_seconds);
  if (!kConfined) return;
  char text[64] = {};
  if (pread(statm, text, sizeof(text) - 1, 0) <= 0) return;
  const uint64_t pages = std::strtoull(text, nullptr, 10);
  LowerLimit(RLIMIT_AS, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + more_bytes);
}

}  // namespace saccade::server

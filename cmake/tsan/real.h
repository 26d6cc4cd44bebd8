// The library's own function, behind the one that stands in for it.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace saccade::tsan {

// `symbol` is as `nm -D` prints it.
template <typename F>
F Real(const char* symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s in any shared library: adapt cmake/tsan to this version\n", symbol);
    std::abort();
  }
  return reinterpret_cast<F>(found);
}

}  // namespace saccade::tsan

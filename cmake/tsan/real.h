// Looks up the shared library's function behind an overriding definition.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace saccade::tsan {

// Returns the next definition of `symbol`, a mangled name as `nm -D` prints it. Aborts if there is none.
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

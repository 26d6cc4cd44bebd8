# The allocator that compute programs link last: tcmalloc, if found (docs/decisions/0013-tcmalloc.md).
# Sanitizer builds use the sanitizer's own malloc.
add_library(saccade_malloc INTERFACE)
find_library(SACCADE_TCMALLOC tcmalloc_minimal)
if(SACCADE_SANITIZE)
  # nothing
elseif(SACCADE_TCMALLOC)
  # No symbol refers to it, so the linker would drop it with --as-needed.
  target_link_libraries(saccade_malloc INTERFACE -Wl,--push-state,--no-as-needed ${SACCADE_TCMALLOC} -Wl,--pop-state)
else()
  message(STATUS "tcmalloc was not found (install libgoogle-perftools-dev): forward passes are about 10 % slower, small ones 50 %")
endif()

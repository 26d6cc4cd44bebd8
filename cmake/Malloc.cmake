# What the programs that compute link last: tcmalloc, where it is found (docs/decisions/0013-tcmalloc.md). The sanitizers
# bring a malloc of their own.
add_library(saccade_malloc INTERFACE)
find_library(SACCADE_TCMALLOC tcmalloc_minimal)
if(SACCADE_SANITIZE)
  # nothing
elseif(SACCADE_TCMALLOC)
  # Nothing needs it by name.
  target_link_libraries(saccade_malloc INTERFACE -Wl,--push-state,--no-as-needed ${SACCADE_TCMALLOC} -Wl,--pop-state)
else()
  message(STATUS "No tcmalloc (libgoogle-perftools-dev): forward passes take about a tenth longer, small ones a half")
endif()

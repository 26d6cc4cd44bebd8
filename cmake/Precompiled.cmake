# Headers that many files include, parsed once for each kind of file (docs/decisions/0030-compile-time.md). A file still
# includes what it uses: with SACCADE_PRECOMPILED=OFF everything builds without them, and lint reads it so.
option(SACCADE_PRECOMPILED "Precompile the headers in cmake/precompiled" ON)

# saccade_precompiled(NAME DEPS ...): makes cmake/precompiled/NAME.h ready for saccade_library(... PRECOMPILED NAME), and
# NAME_test.h for the tests. DEPS bring the include directories.
function(saccade_precompiled name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(NOT SACCADE_PRECOMPILED)
    return()
  endif()
  foreach(kind ${name} ${name}_test)
    add_library(saccade_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled/empty.cc)
    target_link_libraries(saccade_precompiled_${kind} PRIVATE ${ARG_DEPS})
    saccade_target_defaults(saccade_precompiled_${kind})
    target_precompile_headers(saccade_precompiled_${kind} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled/${kind}.h)
  endforeach()
endfunction()

# Lets TARGET use what saccade_precompiled(NAME) made, and remembers NAME for TARGET's tests; nothing without a name.
function(saccade_use_precompiled target name)
  if(name AND TARGET saccade_precompiled_${name})
    target_precompile_headers(${target} REUSE_FROM saccade_precompiled_${name})
    set_target_properties(${target} PROPERTIES SACCADE_PRECOMPILED ${name})
  endif()
endfunction()

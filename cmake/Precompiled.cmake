# Fewer and shorter compilations: precompiled headers, and several files in one.
#
# Headers that many files include, parsed once per kind of file (docs/decisions/0030-compile-time.md). Files
# still include what they use: with SACCADE_PRECOMPILED=OFF everything builds without precompiled headers, as
# lint does.
option(SACCADE_PRECOMPILED "Precompile the headers in cmake/precompiled" ON)

option(SACCADE_UNITY "Compile the files of a library several at a time" ON)

# saccade_unity(TARGET): compiles TARGET's files eight at a time, in which headers and templates are compiled once. Files of
# one library therefore have no two local names alike.
function(saccade_unity target)
  if(SACCADE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # An Impl with members of local types is no longer in the compiler's main file.
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
  endif()
endfunction()

# saccade_precompiled(NAME DEPS ...): precompiles cmake/precompiled/NAME.h for saccade_library(... PRECOMPILED
# NAME), and NAME_test.h for the tests. DEPS provide the include directories.
function(saccade_precompiled name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(NOT SACCADE_PRECOMPILED)
    return()
  endif()
  set(kinds ${name})
  if(GTest_FOUND)
    list(APPEND kinds ${name}_test)
  endif()
  foreach(kind ${kinds})
    add_library(saccade_precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled/empty.cc)
    target_link_libraries(saccade_precompiled_${kind} PRIVATE ${ARG_DEPS})
    if(NOT kind STREQUAL name)
      target_link_libraries(saccade_precompiled_${kind} PRIVATE GTest::gmock GTest::gtest)
    endif()
    saccade_target_defaults(saccade_precompiled_${kind})
    target_precompile_headers(saccade_precompiled_${kind} PRIVATE <cmake/precompiled/${kind}.h>)
    if(CMAKE_CXX_COMPILER_LAUNCHER)
      set_property(TARGET saccade_precompiled_${kind} PROPERTY
        CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/precompile ${CMAKE_CXX_COMPILER_LAUNCHER})
    endif()
  endforeach()
endfunction()

# saccade_use_precompiled(TARGET NAME): makes TARGET use the headers of saccade_precompiled(NAME) and records
# NAME for TARGET's tests. Does nothing if NAME is empty.
function(saccade_use_precompiled target name)
  if(name AND TARGET saccade_precompiled_${name})
    target_precompile_headers(${target} REUSE_FROM saccade_precompiled_${name})
    set_target_properties(${target} PROPERTIES SACCADE_PRECOMPILED ${name})
  endif()
endfunction()

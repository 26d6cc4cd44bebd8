# Functions that define every target of the project: one library per folder, tests beside the code.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Programs are compiled with the libraries' options, so that both can use the same precompiled headers.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Some dependencies add this option; files can share precompiled headers only if all or none of them have it.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)

# Numeric code is compiled with more optimization (saccade_numeric).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(SACCADE_CCACHE ccache)
if(SACCADE_CCACHE)
  # The sloppiness is what ccache requires for precompiled headers; it compares the headers by content. Paths below the
  # checkout are hashed relative to it, so that a second clone finds a part of what the first one compiled. Its debug information
  # then names the first clone's folder.
  set(SACCADE_CCACHE_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=10G ${SACCADE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SACCADE_CCACHE_LAUNCHER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SACCADE_CCACHE_LAUNCHER})
endif()

if(SACCADE_COVERAGE)
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/coverage/compile)
  execute_process(COMMAND clang++-16 -print-file-name=libclang_rt.profile-x86_64.a
    OUTPUT_VARIABLE SACCADE_PROFILE_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS "${SACCADE_PROFILE_RUNTIME}")
    message(FATAL_ERROR "SACCADE_COVERAGE needs clang-16 and its profile runtime (Debian: clang-16 libclang-rt-16-dev); "
                        "./dev coverage installs them")
  endif()
  # The same options that clang passes to the linker. Executables only: a library would bring a second runtime
  # into the process.
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -Wl,-u,__llvm_profile_runtime")
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${SACCADE_PROFILE_RUNTIME}")
endif()

find_program(SACCADE_MOLD mold)
if(SACCADE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(SACCADE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SACCADE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  if(SACCADE_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Functions found by dlsym have argument types that only their own library knows by name.
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=function>)
  endif()
  add_link_options(-fsanitize=${SACCADE_SANITIZE})
  if(SACCADE_SANITIZE MATCHES address)
    add_compile_definitions(SACCADE_ASAN)
  elseif(SACCADE_SANITIZE MATCHES thread)
    add_compile_definitions(SACCADE_TSAN)
  endif()
endif()

if(SACCADE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SACCADE_FUZZ needs clang's libFuzzer; use the preset asan or fuzz")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()

# For the project's own code; generated code is built without these.
set(SACCADE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports overlaps and bounds errors in inlined std::string code that do not exist (GCC bugs 105651,
  # 105329).
  list(APPEND SACCADE_WARNINGS -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(SACCADE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC reports variables as uninitialized on paths that sanitizers insert. The other builds keep the warning.
  list(APPEND SACCADE_WARNINGS -Wno-maybe-uninitialized)
endif()

# saccade_target_defaults(TARGET): turns warnings into errors and makes includes relative to the repository's
# root.
function(saccade_target_defaults target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${SACCADE_WARNINGS}>)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()

# saccade_numeric(TARGET): sets the optimization level for code with loops over pixels and weights.
function(saccade_numeric target)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY" AND NOT SACCADE_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release>>:-O3>)
  endif()
endfunction()

include(Precompiled)

# In sanitizer builds: folder with the release build's libraries of networks and operators, which are linked
# without instrumentation. They are a third of all code to compile, mostly LibTorch's headers, read no
# untrusted input and share no data between the daemon's threads. Without a release build they are compiled
# with the sanitizer.
set(SACCADE_AS_BUILT "")
if(SACCADE_SANITIZE AND EXISTS ${SACCADE_RELEASE_BUILD}/lib/libsaccade_programs.a)
  set(SACCADE_AS_BUILT ${SACCADE_RELEASE_BUILD}/lib)
endif()

# saccade_library(NAME SRCS ... DEPS ... [PRECOMPILED KIND] [AS_BUILT]): adds the static library of one folder.
# KIND names the precompiled headers of its files (cmake/Precompiled.cmake). AS_BUILT: sanitizer builds link
# the library in SACCADE_AS_BUILT instead of compiling it.
function(saccade_library name)
  cmake_parse_arguments(ARG "AS_BUILT" "PRECOMPILED" "SRCS;DEPS" ${ARGN})
  if(ARG_AS_BUILT AND SACCADE_AS_BUILT)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${SACCADE_AS_BUILT}/lib${name}.a ${ARG_DEPS})
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    return()
  endif()
  add_library(${name} STATIC ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  saccade_target_defaults(${name})
  saccade_unity(${name})
  saccade_use_precompiled(${name} "${ARG_PRECOMPILED}")
endfunction()

# Tests marked SANITIZE either build quickly, without LibTorch or gRPC, or test the daemon itself. The asan
# and tsan presets build and run exactly those, through the target sanitized_tests. Tests whose threads share
# no data are marked SANITIZE_MEMORY and left out of the tsan preset. cmake/tsan describes libraries without
# instrumentation to ThreadSanitizer.
add_custom_target(sanitized_tests)

# Test code need not be fast, and there is much of it to compile.
function(saccade_test_options target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()

# saccade_test(NAME SRCS ... DEPS ... [LABELS ...] [SANITIZE|SANITIZE_MEMORY]): adds a GoogleTest program. It
# uses the precompiled headers of the first of DEPS that has any, with GoogleTest's added.
function(saccade_test name)
  cmake_parse_arguments(ARG "SANITIZE;SANITIZE_MEMORY" "" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT GTest_FOUND)
    return()
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  saccade_target_defaults(${name})
  saccade_test_options(${name})
  foreach(library ${ARG_DEPS})
    if(TARGET ${library})
      get_target_property(kind ${library} SACCADE_PRECOMPILED)
      if(kind)
        saccade_use_precompiled(${name} ${kind}_test)
        break()
      endif()
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(TARGET saccade_tsan_absl_mutex)
    target_link_libraries(${name} PRIVATE saccade_tsan_absl_mutex)
  endif()
  if(ARG_SANITIZE OR (ARG_SANITIZE_MEMORY AND NOT SACCADE_SANITIZE STREQUAL "thread"))
    list(APPEND ARG_LABELS sanitize)
    add_dependencies(sanitized_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  # With libgomp's default spinning, a test takes many times as long on cores that other processes use.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300 ENVIRONMENT GOMP_SPINCOUNT=1000)
endfunction()

# saccade_python_test(NAME FILE [ARGS ...] [LABELS ...] [ENV ...] [SANITIZE|SANITIZE_MEMORY]): adds a pytest
# file, run by the project's own Python environment with the build folder in SACCADE_BUILD_DIR. gRPC's fork
# support is off: a test forks before it executes the daemon, and gRPC would restart its threads in the child,
# which abort when their files are closed.
function(saccade_python_test name file)
  cmake_parse_arguments(ARG "SANITIZE;SANITIZE_MEMORY" "TIMEOUT" "ARGS;LABELS;ENV" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_SANITIZE OR (ARG_SANITIZE_MEMORY AND NOT SACCADE_SANITIZE STREQUAL "thread"))
    list(APPEND ARG_LABELS sanitize)
    add_dependencies(sanitized_tests saccaded)
  endif()
  if(NOT ARG_TIMEOUT)
    # Far above the usual time: on cores that many others use, an end-to-end test takes 5 minutes instead of 1.
    set(ARG_TIMEOUT 600)
  endif()
  if(SACCADE_SANITIZE)
    # AddressSanitizer: a failed allocation returns null, as without the sanitizer, and the quarantine of
    # freed memory is kept small, because some tests measure resident memory.
    list(APPEND ARG_ENV SACCADE_SANITIZE=${SACCADE_SANITIZE}
                        ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=8)
  endif()
  add_test(NAME ${name}
    COMMAND ${SACCADE_PYTHON} ${PROJECT_SOURCE_DIR}/tests/run_module.py pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${ARG_ARGS}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "GOMP_SPINCOUNT=1000;GRPC_ENABLE_FORK_SUPPORT=0;SACCADE_BUILD_DIR=${PROJECT_BINARY_DIR};PYTHONPATH=${PROJECT_SOURCE_DIR};PYTHONDONTWRITEBYTECODE=1;PYTEST_DISABLE_PLUGIN_AUTOLOAD=1;${ARG_ENV}")
endfunction()

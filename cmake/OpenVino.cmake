# The library that runs graphs, and the program that checks them, are built if OpenVINO's wheel from PyPI is in the
# Python environment (./dev setup tests, or ./dev setup openvino): the wheel has the C++ headers. The daemon does not need it
# (docs/decisions/0039-graphs-by-openvino.md).
set(SACCADE_OPENVINO AUTO CACHE STRING "Build libsaccade_openvino.so: ON, OFF, or AUTO (when OpenVINO's wheel is found)")
set(SACCADE_HAS_OPENVINO OFF)
if(NOT SACCADE_OPENVINO STREQUAL "OFF" AND NOT SACCADE_SANITIZE)
  execute_process(
    COMMAND ${SACCADE_PYTHON} -c "import importlib.util as u; print(u.find_spec('openvino').submodule_search_locations[0])"
    OUTPUT_VARIABLE SACCADE_OPENVINO_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE found ERROR_QUIET)
  if(found EQUAL 0)
    file(GLOB openvino_library ${SACCADE_OPENVINO_DIR}/libs/libopenvino.so.*)
  endif()
  if(found EQUAL 0 AND openvino_library AND EXISTS ${SACCADE_OPENVINO_DIR}/include/openvino/openvino.hpp)
    set(SACCADE_HAS_OPENVINO ON)
    add_library(libopenvino SHARED IMPORTED)
    set_target_properties(libopenvino PROPERTIES IMPORTED_LOCATION ${openvino_library})
    target_include_directories(libopenvino SYSTEM INTERFACE ${SACCADE_OPENVINO_DIR}/include)
  elseif(SACCADE_OPENVINO STREQUAL "ON")
    message(FATAL_ERROR "SACCADE_OPENVINO=ON, but ${SACCADE_PYTHON} has no package openvino with its headers; "
                        "run ./dev setup openvino")
  endif()
endif()
message(STATUS "OpenVINO plugin: ${SACCADE_HAS_OPENVINO}")

# LibTorch from the PyPI wheel, as two libraries: torch_cpu and c10. The wheel's own CMake package is not
# used: it requires a CUDA toolkit if the wheel is a CUDA build, and defines a dummy protobuf target. Only the
# plugin uses the wheel's CUDA libraries (see docs/decisions/0002-one-cuda-plugin.md).
set(SACCADE_PYTHON "" CACHE FILEPATH "Python of the environment that holds torch (made by ./dev)")
if(NOT SACCADE_PYTHON)
  find_program(SACCADE_SYSTEM_PYTHON python3 REQUIRED)
  set(SACCADE_PYTHON ${SACCADE_SYSTEM_PYTHON} CACHE FILEPATH "" FORCE)
endif()

# Locates torch without importing it: an import would need every CUDA library of the wheel.
execute_process(
  COMMAND ${SACCADE_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
  OUTPUT_VARIABLE SACCADE_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE found ERROR_QUIET)
if(NOT found EQUAL 0 OR NOT EXISTS ${SACCADE_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No LibTorch beside ${SACCADE_PYTHON}. Run ./dev build, which installs torch==2.11.0 and "
                      "passes -DSACCADE_PYTHON, or pass a Python with torch installed.")
endif()
get_filename_component(SACCADE_SITE_PACKAGES ${SACCADE_TORCH_DIR} DIRECTORY)
file(GLOB SACCADE_NVIDIA_LIBS ${SACCADE_SITE_PACKAGES}/nvidia/cu13/lib)

foreach(lib c10 torch_cpu c10_cuda torch_cuda)
  add_library(libtorch_${lib} SHARED IMPORTED)
  set_target_properties(libtorch_${lib} PROPERTIES IMPORTED_LOCATION ${SACCADE_TORCH_DIR}/lib/lib${lib}.so)
endforeach()

add_library(libtorch INTERFACE)
target_include_directories(libtorch SYSTEM INTERFACE ${SACCADE_TORCH_DIR}/include)
# libtorch_cpu.so depends on libcupti and libcudart, which lie in the nvidia wheels beside it. libstdc++ is
# linked before them: libtorch_cpu.so exports an older std::filesystem with a different layout, to which the
# program would be bound otherwise.
target_link_libraries(libtorch INTERFACE stdc++ libtorch_torch_cpu libtorch_c10)
target_link_options(libtorch INTERFACE -Wl,--allow-shlib-undefined)

set(CMAKE_BUILD_RPATH ${SACCADE_TORCH_DIR}/lib ${SACCADE_NVIDIA_LIBS})

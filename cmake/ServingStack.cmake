# The libraries of the serving side that come from system packages.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(OpenCV REQUIRED COMPONENTS core imgproc imgcodecs videoio)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(TIFF REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(FFMPEG REQUIRED IMPORTED_TARGET libavformat libavcodec libswscale libavutil)
# gRPC links OpenSSL too.
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)

# LibTorch's include folder contains another version of protobuf's headers, which would shadow the system's. A
# folder that holds only a link to the system's headers goes first on the include path.
set(SACCADE_PROTOBUF_SHADOW ${PROJECT_BINARY_DIR}/protobuf_headers)
file(MAKE_DIRECTORY ${SACCADE_PROTOBUF_SHADOW})
list(GET Protobuf_INCLUDE_DIRS 0 SACCADE_PROTOBUF_INCLUDE)
file(CREATE_LINK ${SACCADE_PROTOBUF_INCLUDE}/google ${SACCADE_PROTOBUF_SHADOW}/google SYMBOLIC)

# The system's Abseil is built without ThreadSanitizer, which therefore cannot see its locks.
if(SACCADE_SANITIZE STREQUAL "thread")
  add_library(saccade_tsan_absl_mutex OBJECT cmake/tsan/absl_mutex.cc)
  target_link_libraries(saccade_tsan_absl_mutex PUBLIC absl::synchronization ${CMAKE_DL_LIBS})
  target_include_directories(saccade_tsan_absl_mutex PRIVATE ${PROJECT_SOURCE_DIR})
  add_library(saccade_tsan_options OBJECT cmake/tsan/options.cc)
endif()

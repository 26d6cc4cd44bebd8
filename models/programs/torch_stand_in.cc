// Intentionally empty: only the library's name is needed (see CMakeLists.txt and package.cc).

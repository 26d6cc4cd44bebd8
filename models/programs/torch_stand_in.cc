// Nothing: a library whose name counts (see CMakeLists.txt and package.cc).

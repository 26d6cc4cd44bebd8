// CMake requires a source file in a target with precompiled headers.

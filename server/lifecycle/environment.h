// How the libraries below behave unless they are told otherwise, most of it by the environment.
#pragma once

namespace saccade::server {

// OpenMP's threads are to sleep soon instead of spinning for milliseconds: where cores are shared (a
// container's CPU limit, another model's instance), a spinning thread keeps the one it waits for from
// running. And tcmalloc is not to print a line for every block of a gigabyte, which cost volumes are.
// A video is to name no other file or address, and what is wrong with it is told to its client, not printed.
// Packages of AOTInductor are to check what they get: without it a wrong configuration is a read beyond a
// tensor's end.
// libgomp and tcmalloc read such things before main, so the process starts itself again, once, with them set;
// what the user has set stands.
// Abseil as Debian builds it keeps a graph of which mutex is locked under which, behind one lock for the
// whole process: that is for tests, and costs each request some microseconds. Call first thing in main,
// before any thread exists.
void SetLibraryDefaults(char** argv);

}  // namespace saccade::server

// Defaults for libraries, mostly set through environment variables.
#pragma once

namespace saccade::server {

// Sets the defaults; variables that the user has set are kept.
// - OpenMP's threads spin for about ten wake-ups (openmp_spin.h) instead of milliseconds. Where cores are
//   shared (a container's CPU limit, another model's instances), a spinning thread keeps the thread that it
//   waits for from running.
// - tcmalloc does not print a line for every block of a gigabyte; cost volumes are that large.
// - AOTInductor's packages check their inputs. Otherwise a wrong configuration causes reads beyond a tensor's
//   end.
// - Abseil, as built by Debian, does not maintain its graph of lock orders. That is meant for tests, takes a
//   process-wide lock, and costs each request some microseconds.
// libgomp and tcmalloc read their variables before main(), so the process re-executes itself once after
// setting them. Call before any thread exists and before anything is computed.
void SetLibraryDefaults(char** argv);

// Logs how long the threads spin and why, unless the user has set it.
void LogSpinning();

}  // namespace saccade::server

// How the threads of a forward pass wait for each other.
#pragma once

namespace saccade::server {

// Makes OpenMP's threads sleep soon instead of spinning for milliseconds: where cores are shared (a
// container's CPU limit, another model's instance), a spinning thread keeps the one it waits for from
// running. libgomp reads this when it is loaded, so the process starts itself again, once, with it in the
// environment; what the user has set there stands. Call first thing in main, before any thread exists.
void BoundOpenMpSpinning(char** argv);

}  // namespace saccade::server

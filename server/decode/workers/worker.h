// The life of a worker process: it decodes what the daemon puts into the shared memory.
#pragma once

namespace saccade::server {

// Sets up OpenCV for this process, before workers are forked and confined.
void PrepareOpenCv();

// Confines this process, says over kWorkerSocket how that went, and then does one job after the other until
// the daemon closes the socket. Does not return. `drills`: also does what the tests ask for.
[[noreturn]] void RunWorker(bool drills);

}  // namespace saccade::server

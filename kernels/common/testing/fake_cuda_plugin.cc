// Stands in for libsaccade_cuda.so, and for libraries of which nothing is called.

// Makes no graph.
extern "C" void* saccade_make_cuda_graph(int /*gpu*/, void* /*beside*/) { return nullptr; }

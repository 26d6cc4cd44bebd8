// ThreadSanitizer's options for the daemon.

extern "C" {

// Calls to the C library (free, memcpy) from libraries without instrumentation are ignored; a failed
// allocation returns null.
const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:allocator_may_return_null=1";
}

}  // extern "C"

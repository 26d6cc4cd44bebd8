// Force-included in every file of the tsan preset that uses protobuf messages: under ThreadSanitizer
// protobuf's headers add two members to maps, which the distributions' library, built without it, does not
// have.
#pragma once

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")

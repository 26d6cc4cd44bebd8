// Before every file of the tsan preset that knows messages: protobuf gives maps two fields more for
// ThreadSanitizer, which the distributions' library, built without it, does not have.
#pragma once

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")

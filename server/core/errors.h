// Makes errors: about tensors and parameters, and of exceptions.
#pragma once

#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/bad_field.h"
#include "server/core/retry_hint.h"

namespace saccade::server {

// The beginning of a client's text, escaped: errors stay in memory until the client reads them, uncharged.
inline std::string Shortened(absl::string_view text) { return absl::CHexEscape(text.substr(0, 128)); }

// The same in quotes.
inline std::string Shown(absl::string_view text) { return absl::StrCat("'", Shortened(text), "'"); }

inline absl::Status Invalid(absl::string_view subject, absl::string_view problem) {
  absl::Status error = absl::InvalidArgumentError(absl::StrCat(subject, ": ", problem));
  SetBadField(error, subject);
  return error;
}

// The error of a call that an exception has stopped: RESOURCE_EXHAUSTED if there was no memory, else
// INTERNAL. Does not throw: without memory for a message it has none. REQUIRES: called where an exception is
// handled.
inline absl::Status ErrorOfException() {
  auto code = absl::StatusCode::kInternal;
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      code = absl::StatusCode::kResourceExhausted;
      return OutOfMemory("out of memory for the request; try again later");
    } catch (...) {
      // The text of other exceptions may tell what clients should not know.
      return absl::InternalError("the server failed to handle the request because of an error of its own");
    }
  } catch (const std::bad_alloc&) {
    return absl::Status(code, "");
  }
}

}  // namespace saccade::server

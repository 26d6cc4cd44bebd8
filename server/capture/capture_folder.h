// The folder of segments: one is written, and the oldest are deleted.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

// Used by one thread, except bytes(). All functions block on the file system.
class CaptureFolder {
 public:
  struct Options {
    std::string path;
    // Bound on the bytes of all segments together.
    int64_t max_bytes = 0;
    // A segment is deleted when its newest call is older than this.
    absl::Duration max_age = absl::InfiniteDuration();
    // A segment that has so many bytes is not written any more.
    int64_t segment_bytes = int64_t{64} << 20;
    // Nor is one that is so old.
    absl::Duration segment_age = absl::Minutes(10);
  };

  // Creates the folder (mode 0700) if it is missing. The segments that are there count towards the bounds.
  // FAILED_PRECONDITION if the folder cannot be written, or if another daemon writes to it.
  static absl::StatusOr<std::unique_ptr<CaptureFolder>> Open(Options options, absl::Time now);
  ~CaptureFolder();
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;

  // Appends a frame, after deleting old segments to make room. If the file system does not take all of it,
  // the segment is cut to what was there before. RESOURCE_EXHAUSTED if the frame alone exceeds max_bytes.
  absl::Status Write(absl::string_view frame, absl::Time now);

  // Closes the current segment if it is old, and deletes the segments that are too old.
  void Sweep(absl::Time now);

  // Bytes of all segments.
  int64_t bytes() const { return bytes_; }

 private:
  struct Segment {
    std::string name;
    int64_t bytes = 0;
    // When its newest call was written.
    absl::Time written;
  };

  explicit CaptureFolder(Options options) : options_(std::move(options)) {}
  absl::Status Lock();
  absl::Status List();
  absl::Status StartSegment(absl::Time now);
  void CloseSegment();
  void DeleteOldest();

  const Options options_;
  int folder_fd_ = -1;
  int lock_fd_ = -1;
  // -1 if no segment is being written. It is the last of `segments_`.
  int segment_fd_ = -1;
  absl::Time segment_started_;
  // Ascending by name, which is by time.
  std::deque<Segment> segments_;
  int64_t bytes_ = 0;
};

}  // namespace saccade::server

// A client of one Saccade daemon, or of all replicas behind one name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/statistics.h"
#include "client/stream.h"
#include "client/types.h"

namespace saccade::client {

// How the daemon is known, and who calls it. Certificates and keys are PEM, whole, as they lie in files.
struct TlsOptions {
  // Whose signature on the daemon's certificate is trusted; empty: this machine's authorities.
  std::string authorities = "";
  // Shown to a daemon that wants to know who calls (mTLS). Both or none; the key without a passphrase.
  std::string certificate = "";
  std::string key = "";
  // The name in the daemon's certificate, where it is not the address's.
  std::string server_name = "";
};

struct ClientOptions {
  // HOST:PORT or a gRPC target such as unix:/run/saccade.sock. A host name is resolved to all its addresses
  // and calls go to them in turn, so that every replica behind a headless service gets its share.
  std::string url = "127.0.0.1:8001";
  // Of one call, from start to answer. A daemon that is overloaded uses it to refuse what it cannot finish.
  absl::Duration timeout = absl::Seconds(30);
  // Of one message, both ways; the daemon's own default. gRPC's 4 MiB is less than many a picture.
  int64_t max_message_bytes = 64 << 20;
  // Off, because a retry doubles the load of a daemon that just said it has too much. When on, gRPC repeats
  // a call that came back UNAVAILABLE, or CANCELLED though the caller did not give it up, up to three times,
  // waiting as long as the daemon asks for.
  bool retry = false;
  // Without it everybody on the way can read along.
  std::optional<TlsOptions> tls = std::nullopt;
  // Sent with every call, as `authorization: Bearer TOKEN`; empty sends none. Without TLS only to this
  // machine, as whoever reads it on the way can use it.
  std::string token = "";
  // Sends it without TLS to others as well: for networks that encrypt by themselves.
  bool token_without_tls = false;
};

// In what the network saw: from 0, its left or top edge, to 1, its right or bottom edge.
struct Position {
  float x = 0.5F;
  float y = 0.5F;
};

// Which attention to look at.
struct Explain {
  // One of the model's attention_layers; empty is the last of them.
  std::string layer = "";
  // At most so many maps, the layer's first; 0 leaves it to the daemon.
  int most_maps = 0;
  // Whose maps to show, of a model whose attention_by_position is set; none is the one in the middle.
  std::vector<Position> positions = {};
};

// What every request may say, whatever the model's task.
struct RequestOptions {
  // 0 takes the highest version that is ready.
  int64_t version = 0;
  // Larger is served first. Between -100 and 100.
  int priority = 0;
  // Echoed in the answer and in every log line of the daemon about this request.
  std::string request_id = "";
  // Of a picture, or of both pictures of a pair: all that the model is to see. Results are in the whole
  // picture's coordinates all the same.
  std::optional<Region> region = std::nullopt;
  // Asks for attention's maps beside the answer; not of volumes.
  std::optional<Explain> explain = std::nullopt;
};

struct ClassifyOptions {
  RequestOptions request = {};
  // How many classes to return; 0 leaves it to the daemon.
  int top_k = 0;
  // Classes less probable are left out. Between 0 and 1.
  std::optional<float> probability_threshold = std::nullopt;
};

struct DetectOptions {
  RequestOptions request = {};
  // Detections below it are left out; the model's own threshold bounds what there is. Between 0 and 1.
  std::optional<float> score_threshold = std::nullopt;
  // At most so many, best first; 0 returns all that the model finds.
  int top_k = 0;
  // Only these classes; empty returns every class.
  std::vector<int64_t> classes = {};
  // Without them the answer is smaller, and there sooner.
  bool masks = true;
  MaskForm mask_form = MaskForm::kRle;
  // From which probability on a pixel belongs to the mask: between 0 and 1, 0.5 if it is not set.
  std::optional<float> mask_threshold = std::nullopt;
};

// Of a map with a value a pixel: each takes that of the pixel nearest to it.
struct OutputSize {
  // Each from 1 to 16384, together at most 64 Mi pixels.
  int width = 0;
  int height = 0;
  // In place of the two: as large as the picture was when the network saw it. Not with a region.
  bool network = false;
};

struct SegmentOptions {
  RequestOptions request = {};
  LabelMapFormat format = LabelMapFormat::kPng;
  // Of the label map; the picture's if it is not set. Areas are of the picture in any case.
  std::optional<OutputSize> size = std::nullopt;
};

struct StereoOptions {
  RequestOptions request = {};
  DisparityFormat format = DisparityFormat::kPng16;
  // Of the map; the picture's if it is not set. Disparities stay lengths in the picture's pixels.
  std::optional<OutputSize> size = std::nullopt;
};

struct ActionOptions {
  RequestOptions request = {};
  // Segments below it are left out; the model's own threshold bounds what there is. Between 0 and 1.
  std::optional<float> score_threshold = std::nullopt;
  // At most so many, best first; 0 returns all that the model finds.
  int top_k = 0;
  // Only these classes; empty returns every class.
  std::vector<int64_t> classes = {};
};

struct RestoreOptions {
  RequestOptions request = {};
  // Of the answer's voxels; that of the volume as it was sent if it is not set.
  std::optional<VoxelType> type = std::nullopt;
};

// A volume to be sent, once: a TIFF file as it lies on disk, or raw voxels.
struct VolumeSource {
  // Of the file, or of the voxels.
  int64_t bytes = 0;
  // Writes up to `most` bytes to `to`, those that follow the ones it wrote before, and returns how many; 0 at
  // the end. An error ends the call and is what it returns.
  std::function<absl::StatusOr<size_t>(char* to, size_t most)> read;
  // Of raw voxels: little-endian, plane by plane and row by row. A TIFF file tells its own.
  std::optional<VolumeShape> raw = std::nullopt;
};

// For one call, of bytes that are in memory and stay there until it is over.
VolumeSource VolumeFrom(absl::string_view bytes, std::optional<VolumeShape> raw = std::nullopt);

// How far a volume is, from 0 to 1; 0 while it is sent, read, and waits. False gives the call up: CANCELLED.
using RestoreProgress = std::function<bool(double done)>;

// Thread-safe: any number of threads may call at once; their calls share connections. Every call blocks until
// the answer, an error, or the timeout. Errors carry the daemon's canonical code and message (see status.h
// for their details); a daemon that cannot be reached is UNAVAILABLE and IsUnreachable(), one whose
// certificate is not trusted UNAVAILABLE and IsUntrusted().
class Client {
 public:
  // Checks the options but does not connect: the first call does. INVALID_ARGUMENT if url is no address, a
  // certificate or key cannot be used, or another option is out of range.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);

  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // One call a task. `picture` is an encoded picture as it lies on disk (JPEG, PNG, WebP, TIFF or BMP); it is
  // copied once, into the message. A model of another task refuses the call.
  absl::StatusOr<Classification> Classify(absl::string_view model, absl::string_view picture,
                                          const ClassifyOptions& options = {});
  absl::StatusOr<Detections> Detect(absl::string_view model, absl::string_view picture,
                                    const DetectOptions& options = {});
  absl::StatusOr<Segmentation> Segment(absl::string_view model, absl::string_view picture,
                                       const SegmentOptions& options = {});
  // Two pictures of one size, rectified: a point lies on the same row of both.
  absl::StatusOr<Disparity> Stereo(absl::string_view model, absl::string_view left, absl::string_view right,
                                   const StereoOptions& options = {});
  // A whole video file: MP4 or MOV, Matroska or WebM, AVI.
  absl::StatusOr<Actions> Localize(absl::string_view model, absl::string_view video,
                                   const ActionOptions& options = {});
  // Encoded pictures of one size, `frames_per_second` of them; 0 stands for the model's own.
  absl::StatusOr<Actions> Localize(absl::string_view model, const std::vector<std::string>& frames,
                                   double frames_per_second, const ActionOptions& options = {});
  // Sends the volume in parts, so that it may be larger than a message; no more than a part of it is held
  // here, and of the answer only its voxels. Both functions are called on the calling thread. Takes minutes,
  // so `timeout` is to be set accordingly.
  absl::StatusOr<Restoration> Restore(absl::string_view model, const VolumeSource& volume,
                                      const RestoreOptions& options = {},
                                      const RestoreProgress& progress = {});

  // Many pictures over one stream, their answers in order (stream.h). Sends nothing yet, so whether a daemon
  // is there shows with the first answer. INVALID_ARGUMENT if a timeout is none.
  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options = {});

  // Every model version the daemon knows, ready or not.
  absl::StatusOr<std::vector<Model>> ListModels();

  // NOT_FOUND if the model, or that version of it, is unknown. Version 0 is the highest that is ready.
  absl::StatusOr<Model> GetModel(absl::string_view model, int64_t version = 0);

  // Whether the model is served; the empty name asks for the daemon as a whole. NOT_FOUND if it is unknown.
  absl::StatusOr<Health> CheckHealth(absl::string_view model = "");

  // Returns once the model (or the daemon as a whole) is served, however often the daemon goes and comes
  // until then. DEADLINE_EXCEEDED after `timeout`, which stands in for the client's own.
  absl::Status WaitUntilServing(absl::string_view model, absl::Duration timeout);

  // Whether the daemon's process answers, and whether it and all its models are ready.
  absl::StatusOr<bool> ServerLive();
  absl::StatusOr<bool> ServerReady();

  absl::StatusOr<ServerMetadata> GetServerMetadata();

  // What each ready model version has done. A model that was never asked has zeros.
  absl::StatusOr<std::vector<ModelStatistics>> GetStatistics();

  const ClientOptions& options() const { return options_; }

 private:
  struct Transport;
  Client(ClientOptions options, std::unique_ptr<Transport> transport);

  const ClientOptions options_;
  const std::unique_ptr<Transport> transport_;
};

}  // namespace saccade::client

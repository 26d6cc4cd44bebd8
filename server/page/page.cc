#include "server/page/page.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/http/fixed_response.h"
#include "server/page/files.h"

namespace saccade::server {
namespace {

// Content Security Policy: nothing from other hosts, no inline code, no framing. Pictures and videos that the
// user drops have blob: URLs.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; "
    "connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The page takes pictures with the camera when the user asks for it, and uses no other device. No frame may.
constexpr char kPermissions[] =
    "camera=(self), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), hid=(), payment=()";

HttpRoute File(std::string path, std::string type, std::string_view text) {
  HttpResponse response;
  response.content_type = std::move(type);
  // Embedded in the binary, so it needs no owner.
  response.attached.emplace_back(text);
  response.headers = {{"Content-Security-Policy", kPolicy},
                      {"Referrer-Policy", "no-referrer"},
                      {"Permissions-Policy", kPermissions},
                      // The daemon may be replaced by another version.
                      {"Cache-Control", "no-cache"}};
  return {"GET", std::move(path), Always(std::move(response))};
}

}  // namespace

std::vector<HttpRoute> PageRoutes() {
  constexpr char kScript[] = "text/javascript; charset=utf-8";
  return {File("/", "text/html; charset=utf-8", page::kIndexHtml),
          File("/page.css", "text/css; charset=utf-8", page::kPageCss),
          File("/page.js", kScript, page::kPageJs),
          File("/attention.js", kScript, page::kAttentionJs),
          File("/clip.js", kScript, page::kClipJs),
          File("/code.js", kScript, page::kCodeJs),
          File("/findings.js", kScript, page::kFindingsJs),
          File("/load.js", kScript, page::kLoadJs),
          File("/models.js", kScript, page::kModelsJs),
          File("/overlay.js", kScript, page::kOverlayJs),
          File("/point.js", kScript, page::kPointJs),
          File("/request.js", kScript, page::kRequestJs),
          File("/strip.js", kScript, page::kStripJs),
          File("/tiff.js", kScript, page::kTiffJs),
          File("/token.js", kScript, page::kTokenJs),
          File("/volume.js", kScript, page::kVolumeJs),
          File("/boxes.js", kScript, page::kBoxesJs),
          File("/files.js", kScript, page::kFilesJs),
          File("/masks.js", kScript, page::kMasksJs),
          File("/picture.js", kScript, page::kPictureJs),
          File("/shown.js", kScript, page::kShownJs),
          File("/viewer.js", kScript, page::kViewerJs),
          File("/address.js", kScript, page::kAddressJs),
          File("/camera.js", kScript, page::kCameraJs),
          File("/charts.js", kScript, page::kChartsJs),
          File("/compare.js", kScript, page::kCompareJs),
          File("/matching.js", kScript, page::kMatchingJs),
          File("/samples.js", kScript, page::kSamplesJs),
          File("/session.js", kScript, page::kSessionJs),
          File("/loading.js", kScript, page::kLoadingJs),
          File("/text.js", kScript, page::kTextJs),
          File("/icon.svg", "image/svg+xml", page::kIconSvg)};
}

}  // namespace saccade::server

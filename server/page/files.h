// The page's files, embedded into the binary by EmbedFiles.cmake.
#pragma once

#include <string_view>

namespace saccade::server::page {

extern const std::string_view kIndexHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageJs;
extern const std::string_view kAttentionJs;
extern const std::string_view kClipJs;
extern const std::string_view kCodeJs;
extern const std::string_view kFindingsJs;
extern const std::string_view kLoadJs;
extern const std::string_view kModelsJs;
extern const std::string_view kOverlayJs;
extern const std::string_view kPointJs;
extern const std::string_view kRequestJs;
extern const std::string_view kStripJs;
extern const std::string_view kTiffJs;
extern const std::string_view kTokenJs;
extern const std::string_view kVolumeJs;
extern const std::string_view kBoxesJs;
extern const std::string_view kFilesJs;
extern const std::string_view kMasksJs;
extern const std::string_view kPictureJs;
extern const std::string_view kShownJs;
extern const std::string_view kViewerJs;
extern const std::string_view kAddressJs;
extern const std::string_view kCameraJs;
extern const std::string_view kChartsJs;
extern const std::string_view kCompareJs;
extern const std::string_view kMatchingJs;
extern const std::string_view kSamplesJs;
extern const std::string_view kSessionJs;
extern const std::string_view kLoadingJs;
extern const std::string_view kTextJs;
extern const std::string_view kIconSvg;

}  // namespace saccade::server::page

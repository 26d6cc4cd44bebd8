#include "client/cli/commands/request_options.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace saccade::client {

RequestOptions RequestOf(const InputsCommand& command) {
  RequestOptions options;
  options.version = command.version;
  options.priority = command.priority;
  return options;
}

RequestOptions RequestOf(const PicturesCommand& command) {
  RequestOptions options = RequestOf(static_cast<const InputsCommand&>(command));
  options.region = ParseRegion(command.region);
  if (!command.tiles.empty()) options.tiles = ParseTiles(command.tiles);
  if (command.explain) {
    options.explain = Explain{.layer = command.explain_layer, .max_maps = command.explain_maps};
    for (const std::string& at : command.explain_at) {
      if (const auto position = ParsePosition(at)) options.explain->positions.push_back(*position);
    }
  }
  return options;
}

ReportOptions ReportOf(const InputsCommand& command) {
  return {.format = command.format,
          .model = command.model,
          .url = command.connection.url,
          .quiet = command.quiet};
}

std::optional<Region> ParseRegion(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  Region region;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &region.x) || !absl::SimpleAtoi(parts[1], &region.y) ||
      !absl::SimpleAtoi(parts[2], &region.width) || !absl::SimpleAtoi(parts[3], &region.height))
    return std::nullopt;
  return region;
}

std::optional<Tiles> ParseTiles(const std::string& text) {
  if (text == "whole") return Tiles{.whole = true};
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Tiles tiles;
  const bool read = parts.size() <= 2 && absl::SimpleAtoi(parts[0], &tiles.size) &&
                    (parts.size() == 1 || absl::SimpleAtoi(parts[1], &tiles.overlap));
  return read ? std::optional(tiles) : std::nullopt;
}

std::optional<Position> ParsePosition(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  Position position;
  if (parts.size() != 2 || !absl::SimpleAtof(parts[0], &position.x) ||
      !absl::SimpleAtof(parts[1], &position.y))
    return std::nullopt;
  // The comparison is false for NaN.
  const auto within = [](float value) { return value >= 0 && value <= 1; };
  return within(position.x) && within(position.y) ? std::optional(position) : std::nullopt;
}

std::optional<OutputSize> ParseOutputSize(const std::string& text) {
  OutputSize size;
  if (text == "network") {
    size.network = true;
    return size;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &size.width) ||
      !absl::SimpleAtoi(parts[1], &size.height) || size.width < 1 || size.height < 1)
    return std::nullopt;
  return size;
}

}  // namespace saccade::client

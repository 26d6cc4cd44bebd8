// Parses the values of flags, and converts a command's options to those of its requests and of its report.
#pragma once

#include <optional>
#include <string>

#include "client/cli/commands/options.h"
#include "client/cli/output/report.h"
#include "client/cpp/client.h"

namespace saccade::client {

RequestOptions RequestOf(const InputsCommand& command);
RequestOptions RequestOf(const PicturesCommand& command);

ReportOptions ReportOf(const InputsCommand& command);

// Parses "X,Y,WIDTH,HEIGHT"; empty if `text` is malformed.
std::optional<Region> ParseRegion(const std::string& text);

// Parses "SIZE:OVERLAP", "SIZE" or "whole"; empty if `text` is malformed.
std::optional<Tiles> ParseTiles(const std::string& text);

// Parses "X,Y", each from 0 to 1; empty if `text` is malformed.
std::optional<Position> ParsePosition(const std::string& text);

// Parses "WIDTHxHEIGHT" or "network"; empty if `text` is malformed.
std::optional<OutputSize> ParseOutputSize(const std::string& text);

}  // namespace saccade::client

#include "server/http/routes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace saccade::server {
namespace {

constexpr size_t kShownPathBytes = 200;

constexpr auto kKey = [](std::string* out, const auto& entry) { out->append(entry.first); };

std::vector<std::string> SegmentsOf(absl::string_view path) { return absl::StrSplit(path.substr(1), '/'); }

bool IsName(const std::string& segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

int HexDigit(char c) {
  if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return -1;
  return c <= '9' ? c - '0' : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

// Nullopt if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(16 * high + low));
    i += 2;
  }
  return decoded;
}

bool Matches(const std::vector<std::string>& route, const std::vector<std::string>& path,
             std::map<std::string, std::string>& values) {
  if (route.size() != path.size()) return false;
  values.clear();
  for (size_t i = 0; i < route.size(); ++i) {
    if (!IsName(route[i])) {
      if (route[i] != path[i]) return false;
    } else if (path[i].empty()) {
      return false;
    } else {
      values[route[i].substr(1, route[i].size() - 2)] = path[i];
    }
  }
  return true;
}

// Fixed segments are tried before {name}s, which would fit as well.
bool TriedBefore(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(),
                                      [](const std::string& a, const std::string& b) {
                                        return std::make_pair(IsName(a), absl::string_view(a)) <
                                               std::make_pair(IsName(b), absl::string_view(b));
                                      });
}

}  // namespace

absl::string_view HandledMethod(absl::string_view method) { return method == "HEAD" ? "GET" : method; }

absl::StatusOr<Routes> Routes::Create(std::vector<HttpRoute> routes) {
  Routes made;
  for (HttpRoute& route : routes) {
    if ((route.method != "GET" && route.method != "POST") || route.path.empty() || route.path[0] != '/') {
      return absl::InvalidArgumentError(absl::StrCat("cannot serve the route ", route.method, " ", route.path,
                                                     "; expected GET or POST and a path that begins with /"));
    }
    auto path = std::find_if(made.paths_.begin(), made.paths_.end(),
                             [&route](const Path& known) { return known.text == route.path; });
    if (path == made.paths_.end()) path = made.paths_.insert(path, {route.path, SegmentsOf(route.path), {}});
    Action action{std::move(route.handler), route.may_block, route.bytes_to_parse,
                  std::move(route.check_head)};
    if (!path->actions.emplace(route.method, std::move(action)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the route ", route.method, " ", route.path, " stands twice"));
    }
  }
  std::sort(made.paths_.begin(), made.paths_.end(),
            [](const Path& a, const Path& b) { return TriedBefore(a.segments, b.segments); });
  return made;
}

HttpResponse Routes::NoSuchPath(absl::string_view path) const {
  const auto text = [](std::string* out, const Path& known) { out->append(known.text); };
  return HttpError(404, absl::StrCat("no such path: ", path.substr(0, kShownPathBytes), "; there are ",
                                     absl::StrJoin(paths_, ", ", text)));
}

// Also the response to OPTIONS.
HttpResponse Routes::NoSuchMethod(const Path& known, absl::string_view method, absl::string_view path) {
  const std::string allowed = absl::StrCat(absl::StrJoin(known.actions, ", ", kKey),
                                           known.actions.count("GET") > 0 ? ", HEAD" : "", ", OPTIONS");
  HttpResponse response{200, "text/plain"};
  if (method != "OPTIONS") {
    response = HttpError(405, absl::StrCat(path.substr(0, kShownPathBytes), " does not take ",
                                           method.substr(0, kShownPathBytes), "; use ",
                                           absl::StrJoin(known.actions, " or ", kKey)));
  }
  response.headers = {{"Allow", allowed}};
  return response;
}

std::variant<Routes::Match, HttpResponse> Routes::Find(absl::string_view method,
                                                       absl::string_view path) const {
  if (path.empty() || path[0] != '/') return NoSuchPath(path);
  std::vector<std::string> segments = SegmentsOf(path);
  for (std::string& segment : segments) {
    auto decoded = PercentDecoded(segment);
    if (!decoded) return HttpError(400, "a '%' in the path is not followed by two hexadecimal digits");
    segment = *std::move(decoded);
  }
  Match match;
  const auto known = std::find_if(paths_.begin(), paths_.end(), [&](const Path& candidate) {
    return Matches(candidate.segments, segments, match.path_values);
  });
  if (known == paths_.end()) return NoSuchPath(path);
  const auto action = known->actions.find(std::string(HandledMethod(method)));
  if (action == known->actions.end()) return NoSuchMethod(*known, method, path);
  match.handler = &action->second.handler;
  match.may_block = action->second.may_block;
  match.bytes_to_parse = action->second.bytes_to_parse;
  match.check_head = &action->second.check_head;
  match.route = known->text;
  return match;
}

}  // namespace saccade::server

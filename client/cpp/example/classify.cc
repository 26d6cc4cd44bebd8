// classify HOST:PORT MODEL PICTURE: prints the most probable classes of a picture.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "client/cpp/client.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: classify HOST:PORT MODEL PICTURE\n", 2;
  std::ifstream file(argv[3], std::ios::binary);
  const std::string picture{std::istreambuf_iterator<char>(file), {}};
  auto client = saccade::client::Client::Connect({.url = argv[1]});
  if (!client.ok()) return std::cerr << client.status() << '\n', 2;
  const auto answer = (*client)->Classify(argv[2], picture, {.top_k = 3});
  if (!answer.ok()) return std::cerr << answer.status() << '\n', 1;
  for (const auto& item : answer->classes) std::cout << item.label << ' ' << item.probability << '\n';
}
